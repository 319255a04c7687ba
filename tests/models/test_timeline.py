"""Tasks over time, of the recorded log and of made ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl

from models.timeline import columns, loads, timeline
from tests.models.spark_logs import RECORDED, gd_fit, job, lines, task, unpersisted, whole

L_BFGS_LOG = next(RECORDED.glob("trials/*l-bfgs*/eventlog/*"))
GD_LOG = next(RECORDED.glob("trials/*-gd-*/eventlog/*"))


def test_every_task_has_a_place_and_a_kind() -> None:
    found = pl.DataFrame(columns(timeline(GD_LOG)))
    mine = found.filter(pl.col("group") == GD_LOG.parent.parent.name)
    assert set(mine["kind"]) == {"load", "pass"}
    assert mine.filter(kind="load").height == 4, "a task for each partition"
    assert mine.filter(kind="pass", epoch=2).height == 5, "four, and one that sums them up"
    assert mine.filter(pl.col("kind").eq("pass") & pl.col("epoch").is_null()).height == 5, "the final loss"
    assert set(found["slot"]) == {0}, "executors of one core"
    assert (found["ended"] >= found["launched"]).all()
    assert found["launched"].is_sorted()
    assert mine.filter(kind="pass")["shuffle_remote_bytes"].sum() > 0


def test_an_l_bfgs_epoch_has_the_passes_of_the_outcome_beside_the_log(tmp_path: Path) -> None:
    mine = [each for each in timeline(L_BFGS_LOG) if each.kind == "pass"]
    jobs = {epoch: len({each.job for each in mine if each.epoch == epoch}) for epoch in (1, 2, 3, 4)}
    assert jobs[1] > 1, "the pass at the initial weights is the first epoch's"
    alone = tmp_path / L_BFGS_LOG.name
    shutil.copytree(L_BFGS_LOG, alone)
    assert {each.epoch for each in timeline(alone) if each.kind == "pass"} == set(range(1, sum(jobs.values()) + 1))


def test_what_loading_took_by_the_executors_there_were() -> None:
    gd = next(load for load in loads(GD_LOG) if load.group == GD_LOG.parent.parent.name)
    assert (gd.executors, gd.cores, gd.remote_bytes_read) == (2, 2, 0)
    assert gd.seconds > 0
    assert gd.bytes_read > 0


def test_bytes_of_tasks_far_from_their_rows_are_remote(tmp_path: Path) -> None:
    events = gd_fit(2)
    far = task(0, at=1000, until=1200, index=1)
    far["Task Info"]["Locality"] = "RACK_LOCAL"
    log = tmp_path / "app"
    log.write_bytes(lines(whole(events[0], events[1], far, *events[2:], unpersisted())))
    (load,) = loads(log)
    assert (load.bytes_read, load.remote_bytes_read, load.seconds) == (10, 5, 0.2)


def test_where_no_task_had_a_preference_remote_is_not_told(tmp_path: Path) -> None:
    events = gd_fit(2)
    events[1]["Task Info"]["Locality"] = "NO_PREF"
    log = tmp_path / "app"
    log.write_bytes(lines(whole(*events, unpersisted())))
    assert loads(log)[0].remote_bytes_read is None


def test_work_that_is_no_fits_is_other(tmp_path: Path) -> None:
    log = tmp_path / "app"
    log.write_bytes(lines(whole(*job(1, name="collect at X", at=10, until=20))))
    (span,) = timeline(log)
    assert (span.kind, span.group, span.epoch, span.launched, span.ended) == ("other", None, None, 0.01, 0.02)


def test_an_application_without_a_task_has_no_rows(tmp_path: Path) -> None:
    log = tmp_path / "app"
    log.write_bytes(lines(whole()))
    assert columns(timeline(log))["executor"] == []
