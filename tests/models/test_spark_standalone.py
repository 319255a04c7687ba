"""Where executors find a driver whose application Spark's own cluster manager runs. The whole: tests/cluster."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.spark_master import master
from models.spark_standalone import Standalone, driver_address
from models.spec import Resources
from store.errors import TrialError
from tests.models.made import surroundings


@pytest.fixture
def url() -> Iterator[str]:
    """Of a master that answers, and more we ask of none."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"spark://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def silent() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"spark://127.0.0.1:{listener.getsockname()[1]}"


def test_the_driver_is_where_the_master_sees_it(url: str, silent: str) -> None:
    assert driver_address(url) == "127.0.0.1"
    assert driver_address(f"{silent},{url.removeprefix('spark://')}") == "127.0.0.1", "one of them is on standby"


def test_a_master_that_is_not_there_is_one_sentence(silent: str) -> None:
    with pytest.raises(
        TrialError, match=rf"no Spark master answers at {silent} \(.*refused\); .*yarnstick.spark.master"
    ):
        driver_address(silent)
    with pytest.raises(TrialError, match=r"no Spark master answers at spark://no-such-host.invalid:7077"):
        driver_address("spark://no-such-host.invalid:7077")


def test_an_application_takes_the_cores_of_its_trial_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    for name in ("SPARK_HOME", "SPARK_LOCAL_IP", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.setenv(name, "as it was")
    found = master(surroundings(tmp_path, spark_url=url))
    assert isinstance(found, Standalone)
    conf = found.conf(Resources(executors=3, cores=2, memory_mib=1024))
    assert (conf["spark.master"], conf["spark.cores.max"]) == (url, "6")
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
