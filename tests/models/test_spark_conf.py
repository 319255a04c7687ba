"""What Spark is told: a user's own settings win, and options of JVMs are ours and theirs."""

from __future__ import annotations

from models.spark_conf import DRIVER_OPTIONS, EXECUTOR_OPTIONS, together


def test_a_users_own_wins_and_options_of_jvms_come_after_ours() -> None:
    ours = {DRIVER_OPTIONS: "-Dours=1", "spark.ui.enabled": "false"}
    given = {DRIVER_OPTIONS: "-Xss4m", EXECUTOR_OPTIONS: "-Xss4m", "spark.ui.enabled": "true", "spark.own": "1"}
    assert together(ours, given) == {
        DRIVER_OPTIONS: "-Dours=1 -Xss4m",
        EXECUTOR_OPTIONS: "-Xss4m",
        "spark.ui.enabled": "true",
        "spark.own": "1",
    }
