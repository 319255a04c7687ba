"""How large containers are: by Spark's own rules, and by a user's settings as Spark reads them."""

from __future__ import annotations

import pytest

from models import spark_conf
from models.protocol import Yarn
from models.spark_containers import executor_mib, master_cores, master_mib
from models.spec import Resources
from store.errors import SettingError
from store.opening import Reach
from yarn.shipped import Shipped

TWO_GB = Resources(executors=2, cores=1, memory_mib=2048, deploy_mode="client")
CLUSTER = Resources(executors=2, cores=1, memory_mib=2048, deploy_mode="cluster")


@pytest.mark.parametrize(
    ("given", "mib"),
    [
        ({}, 2432),
        ({"spark.executor.memoryOverhead": "1g"}, 3072),
        ({"spark.executor.memoryOverhead": "600"}, 2648),
        ({"spark.executor.memoryOverhead": "600mb"}, 2648),
        ({"spark.executor.memoryOverhead": "1048577k"}, 2048 + 1025),
        ({"spark.executor.memory": "4G", "spark.executor.memoryOverhead": "512M"}, 4608),
    ],
)
def test_a_users_own_settings_win(given: dict[str, str], mib: int) -> None:
    assert executor_mib(TWO_GB, python_mib=0, given=given) == mib


def test_a_users_overhead_wins_over_what_python_takes_even_where_it_is_less() -> None:
    """As with Spark, which is told the last of both."""
    assert executor_mib(TWO_GB, python_mib=1536, given={}) == 3584
    assert executor_mib(TWO_GB, python_mib=1536, given={"spark.executor.memoryOverhead": "1g"}) == 3072


def test_a_master_is_small_where_the_driver_is_here() -> None:
    assert (master_mib(TWO_GB, given={}), master_cores(TWO_GB, given={})) == (896, 1)
    assert (master_mib(CLUSTER, given={}), master_cores(CLUSTER, given={})) == (2432, 1)
    own = {"spark.driver.memory": "8g", "spark.driver.cores": "2", "spark.yarn.am.memory": "1g"}
    assert (master_mib(CLUSTER, given=own), master_cores(CLUSTER, given=own)) == (8192 + 819, 2)
    assert (master_mib(TWO_GB, given=own), master_cores(TWO_GB, given=own)) == (1408, 1)


@pytest.mark.parametrize("size", ["1.5g", "much", "", "-1g", "1x"])
def test_what_is_no_size_is_refused(size: str) -> None:
    with pytest.raises(SettingError, match=r"spark.executor.memoryOverhead=.* is no size that Spark takes; write a"):
        executor_mib(TWO_GB, python_mib=0, given={"spark.executor.memoryOverhead": size})


def test_it_is_what_spark_is_told() -> None:
    yarn = Yarn(
        reach=Reach(url="hdfs://n/s"),
        folder="applications",
        jars="",
        queue="default",
        resource_managers=(),
        accepted_seconds=1.0,
        python="python3",
        shipped=Shipped(),
        python_mib=1800,
    )
    told = {**spark_conf.common(TWO_GB), **spark_conf.on_yarn(TWO_GB, yarn, tag="t", session="")}
    assert executor_mib(TWO_GB, python_mib=1800, given={}) == executor_mib(TWO_GB, python_mib=0, given=told) == 3848
