"""What earlier runs left on YARN is ended before Spark's first session, and before a job of MapReduce as well."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from pwd import getpwuid
from types import SimpleNamespace

import msgspec
import pytest

from mapreduce.mr_normalize import MRNormalize
from mapreduce.on_hadoop import Errand
from pipeline.config import read_settings
from pipeline.datasets import jobs
from pipeline.orphans import name_on_yarn
from pipeline.settings import Settings
from store.errors import TrialError
from store.local import LocalStore
from store.manifest import Manifest
from store.publish import Staging
from tests.yarn.test_submission import applications, asked_to_kill, dead_tag
from tests.yarn.wrong_yarn import WrongYarn, serving


@pytest.fixture
def yarn() -> Iterator[WrongYarn]:
    with serving() as server:
        yield server


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, yarn: WrongYarn) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HADOOP_USER_NAME", "ada")
    for name in ("hadoop", "streaming.jar"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    return read_settings(
        "quick",
        overrides=[
            "store.url=webhdfs://127.0.0.1:9/ours",
            "store.security=insecure",
            "mapreduce.runner=hadoop",
            f"hadoop.resource_managers={yarn.address}",
            f"hadoop.command={tmp_path / 'hadoop'}",
            f"hadoop.streaming_jar={tmp_path / 'streaming.jar'}",
        ],
    )


def test_a_job_of_mapreduce_ends_them_first(
    settings: Settings, yarn: WrongYarn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Spark is not on YARN, nothing else would."""
    assert settings.spark.master == "local-cluster"
    [left] = applications(yarn, ("ada", dead_tag()))
    killed_before: list[list[str]] = []

    def run_on_hadoop(errand: Errand, **_: object) -> None:
        killed_before.append(asked_to_kill(yarn))
        raise TrialError("that is all")

    monkeypatch.setattr(jobs, "run_on_hadoop", run_on_hadoop)
    store = LocalStore(tmp_path / "store")
    manifest = Manifest(parts=(), facts={"columns": 2, "classes": 2, "pixel_range": (None, None)})
    staging = Staging(store, "data/d/normalized/train")
    with pytest.raises(TrialError, match="that is all"):
        jobs.run_job(MRNormalize, "data/d/csv/train", manifest, settings=settings, store=store, staging=staging)
    assert killed_before == [[left]]


def test_we_are_known_by_the_account_or_as_hadoop_is_told(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name_on_yarn(settings) == "ada"
    monkeypatch.delenv("HADOOP_USER_NAME")
    monkeypatch.setenv("USER", "somebody")
    monkeypatch.setenv("LOGNAME", "somebody")
    assert name_on_yarn(settings) == getpwuid(os.getuid()).pw_name


@pytest.mark.parametrize("principal", ["grace@EXAMPLE.ORG", "grace/edge.example.org@EXAMPLE.ORG", "grace"])
def test_with_kerberos_we_are_who_the_ticket_says(
    principal: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = SimpleNamespace(Credentials=lambda usage: SimpleNamespace(name=principal))
    monkeypatch.setitem(sys.modules, "gssapi", fake)
    secured = msgspec.structs.replace(settings, store=msgspec.structs.replace(settings.store, security="kerberos"))
    assert name_on_yarn(secured) == "grace"
    assert name_on_yarn(settings) == "ada"
