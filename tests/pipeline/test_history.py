"""`yarnstick history`: few requests for many runs, an index that writers at once cannot spoil, the whole command."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.record import schema
from pipeline import history_index
from pipeline.history import look, publish_page
from pipeline.history_index import INDEX, MOST_FILES, entries
from pipeline.reporting import known_run
from report.history import history
from report.history_entry import RunEntry
from store.errors import StoreError
from store.local import LocalStore
from store.protocol import Entry
from tests.pipeline.conftest import Finished
from tests.pipeline.place import PROFILE, Place, assert_one_error
from tests.report.made import START
from tests.report.test_history import entries as made_entries
from tests.report.test_history import entry, measured, noisy


class CountingStore(LocalStore):
    """A local store that counts what would be a request each on HDFS."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.requests: Counter[str] = Counter()
        self.asked: list[str] = []

    def _count(self, verb: str, path: str) -> None:
        self.requests[verb] += 1
        self.asked.append(f"{verb} {path}")

    def list(self, path: str) -> list[Entry]:
        self._count("list", path)
        return super().list(path)

    def exists(self, path: str) -> bool:
        self._count("exists", path)
        return super().exists(path)

    def open(self, path: str) -> Any:
        self._count("open", path)
        return super().open(path)

    def write(self, path: str, data: bytes) -> None:
        self._count("write", path)
        super().write(path, data)

    def remove(self, path: str) -> None:
        self._count("remove", path)
        super().remove(path)


@pytest.fixture
def copied(finished: Finished, tmp_path: Path) -> Place:
    """With the run R that ended well, to do with as one likes."""
    settings = PROFILE.replace("platforms = steady", "platforms = torch-cpu steady")
    place = Place(tmp_path / "copied", settings)
    shutil.copytree(finished.place.store, place.store)
    return place


def epochs_table(place: Place, name: str) -> pa.Table:
    return pq.read_table(place.store / "runs" / name / "report" / "epochs.parquet")


def again(place: Place, name: str, *, days: int, factor: float = 1.0, trials: int = 6) -> None:
    """The run R once more under another name, later, with other times and more trials; without an index of its own."""
    folder = place.store / "runs" / name
    shutil.copytree(place.store / "runs" / "R", folder)
    about = json.loads((folder / "run.json").read_text())
    begun = START + timedelta(days=days)
    (folder / "run.json").write_text(json.dumps(about | {"run_id": name, "begun_at": begun.isoformat()}))
    table = epochs_table(place, "R").to_pylist()
    made = []
    for trial in range(1, trials + 1):
        wobble = 1 + float(np.random.default_rng(100 * days + trial).normal(0, 0.02))
        made += [
            record | {"run_id": name, "trial": trial, "seconds": 0.1 * factor * wobble}
            for record in table
            if record["trial"] == 1
        ]
    pq.write_table(pa.Table.from_pylist(made, schema=schema()), folder / "report" / "epochs.parquet")


def index_files(place: Place) -> list[Path]:
    return sorted((place.store / INDEX).iterdir())


def names(store: LocalStore) -> list[str]:
    return [each.run_id for each in entries(store)[0]]


def many(root: Path, count: int) -> None:
    """As many runs, of which the index knows all."""
    found = made_entries([1.0] * count)
    for each in found:
        (root / "runs" / each.run_id).mkdir(parents=True)
    history_index.put(LocalStore(root), found)


def test_a_report_is_noted_as_it_is_published(finished: Finished) -> None:
    files = index_files(finished.place)  # one, or more where others reported the run again
    store = CountingStore(finished.place.store)
    [found] = [each for each in entries(store)[0] if each.run_id == "R"]
    assert (found.run_id, found.profile) == ("R", "tiny")
    assert {each.identity["platform"] for each in found.measured} == {"torch-cpu", "steady"}
    assert all(len(each.seconds) == 2 for each in found.measured)
    assert (store.requests["list"], store.requests["open"]) == (2, len(files))


def test_500_runs_are_two_listings_and_one_read(tmp_path: Path) -> None:
    many(tmp_path, 500)
    store = CountingStore(tmp_path)
    looked = look(store, "quick")
    assert looked.history is not None
    assert len(looked.history.runs) == 500
    assert store.requests == {"list": 2, "open": 1}


def test_only_runs_that_the_index_lacks_are_read_and_only_once(copied: Place) -> None:
    shutil.rmtree(copied.store / INDEX)
    many(copied.store, 200)
    store = CountingStore(copied.store)
    assert len(names(store)) == 201
    read = [asked for asked in store.asked if asked.startswith("open runs/")]
    assert read == ["open runs/R/run.json", "open runs/R/report/epochs.parquet"]
    store.requests.clear()
    assert "R" in names(store)
    assert store.requests == {"list": 2, "open": 1}


def test_an_index_that_is_gone_or_damaged_is_made_again(copied: Place) -> None:
    store = LocalStore(copied.store)
    before = entries(store)[0]
    whole = index_files(copied)[0].read_bytes()
    other_version = gzip.compress(b'{"run_id": 1}\n')
    for damage in (b"", b"no gzip", whole[:-20], whole[:30] + b"x" + whole[31:], other_version):
        for file in index_files(copied):
            file.write_bytes(damage)
        after = entries(store)[0]
        assert [replace(each, noted_at=START) for each in after] == [replace(each, noted_at=START) for each in before]
    shutil.rmtree(copied.store / INDEX)
    assert names(store) == ["R"]


def test_entries_of_a_version_that_took_trainings_of_all_lengths_for_one_are_made_again(copied: Place) -> None:
    store = LocalStore(copied.store)
    before = entries(store)[0]
    for file in index_files(copied):
        lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        for line in lines:
            for each in line["measured"]:
                del each["whole_epochs"]
        file.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    after = entries(store)[0]
    assert [replace(each, noted_at=START) for each in after] == [replace(each, noted_at=START) for each in before]
    assert all(each.noted_at > old.noted_at for each, old in zip(after, before, strict=True))


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    """Two put the index together at once, and a run is reported again between their reading and their writing."""
    many(tmp_path, 3)
    store = LocalStore(tmp_path)
    first, second, third = history_index._known(store)[0].values()
    history_index.put(store, [replace(second, attempts=50)])
    known, files = history_index._known(store)
    history_index.put(store, [replace(third, attempts=60)])  # reported while the first is at it
    also, more = history_index._known(store)
    history_index._put_together(store, also.values(), more)
    history_index._put_together(store, known.values(), files)  # from what it read before
    found = {each.run_id: each.attempts for each in entries(store)[0]}
    assert found == {first.run_id: first.attempts, second.run_id: 50, third.run_id: 60}
    assert len(store.list(INDEX)) == 1, "together again"


def test_many_writers_and_readers_at_once_lose_nothing(tmp_path: Path) -> None:
    found = made_entries([1.0] * 6)
    for each in found:
        (tmp_path / "runs" / each.run_id).mkdir(parents=True)

    def report_often(run: RunEntry) -> None:
        for attempts in range(1, 13):
            history_index.add(LocalStore(tmp_path), replace(run, attempts=attempts))

    def read_often(_: object) -> None:
        for _ in range(10):
            with suppress(StoreError):  # as where others put it together all the time
                entries(LocalStore(tmp_path))

    with ThreadPoolExecutor(8) as pool:
        assert len([*pool.map(report_often, found), *pool.map(read_often, range(2))]) == 8
    last = {each.run_id: each.attempts for each in entries(LocalStore(tmp_path))[0]}
    assert last == {each.run_id: 12 for each in found}


def test_a_file_that_goes_while_it_is_read_is_looked_for_again(tmp_path: Path) -> None:
    many(tmp_path, 3)

    class Vanishing(LocalStore):
        gone = False

        def read_each(self, paths: Sequence[str]) -> Any:
            if not self.gone:
                self.gone = True
                known = history_index._read(LocalStore(tmp_path), paths)
                history_index._put_together(LocalStore(tmp_path), known, paths)
            return super().read_each(paths)

    assert len(names(Vanishing(tmp_path))) == 3


def test_who_may_only_read_has_the_answer_all_the_same(copied: Place) -> None:
    class ReadOnly(LocalStore):
        def write(self, path: str, data: bytes) -> None:
            raise StoreError("it may not be written")

    shutil.rmtree(copied.store / INDEX)
    assert names(ReadOnly(copied.store)) == ["R"]


def test_reports_alone_keep_the_index_small(copied: Place) -> None:
    store = LocalStore(copied.store)
    run = known_run(store, "R")
    for _ in range(3 * MOST_FILES):
        history_index.note(store, run, epochs_table(copied, "R"))
        assert len(store.list(INDEX)) <= MOST_FILES
    assert names(store) == ["R"]


def test_a_run_that_is_gone_is_in_no_history(tmp_path: Path) -> None:
    many(tmp_path, 5)
    shutil.rmtree(tmp_path / "runs" / "R03")
    assert names(LocalStore(tmp_path)) == ["R00", "R01", "R02", "R04"]


def test_a_run_without_a_report_is_not_in_the_history_yet(copied: Place) -> None:
    again(copied, "S", days=1)
    shutil.rmtree(copied.store / "runs" / "S" / "report")
    store = LocalStore(copied.store)
    looked = look(store, "tiny")
    assert looked.history is not None
    assert [each.entry.run_id for each in looked.history.runs] == ["R"]
    asked = CountingStore(copied.store)
    look(asked, "tiny")
    assert asked.requests == {"list": 2, "open": 1}, "it is not asked for again"


def test_the_command_answers_with_a_page(copied: Place) -> None:
    for day in range(1, 9):
        again(copied, f"S{day}", days=day)
    shutil.rmtree(copied.store / "runs" / "R")
    done = copied.run("history", "--profile", "tiny", "--fail-on-regression")
    assert done.returncode == 0, done.stderr
    assert "8 runs of profile tiny, 2025-03-02 to 2025-03-09" in done.stdout
    assert "is as fast as those before it" in done.stdout
    [said] = re.findall("^Page: (.*)$", done.stdout, re.MULTILINE)
    page = Path(said)
    assert page.parent.parent == copied.store / "history"
    text = page.read_text()
    assert "<h1>The newest run, S8, is as fast" in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_a_slower_newest_run_fails_where_that_is_asked_for(copied: Place) -> None:
    for day in range(1, 7):
        again(copied, f"S{day}", days=day)
    again(copied, "slow", days=8, factor=1.15)
    shutil.rmtree(copied.store / "runs" / "R")
    told = copied.run("history", "--profile", "tiny")
    assert told.returncode == 0
    assert told.stdout.count("slower beyond doubt") >= 2
    assert_one_error(
        copied.run("history", "--profile", "tiny", "--fail-on-regression"),
        "The newest run, slow, is slower beyond doubt: ",
        "more configuration",
    )
    done = copied.run("history", "--profile", "tiny", "--json", "--fail-on-regression")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["regression"] is True
    assert found["newest"] == "slow"
    assert all(each["newest"]["ratio"] == pytest.approx(1.15, abs=0.03) for each in found["series"])


def test_an_empty_store_says_how_to_start(place: Place) -> None:
    done = place.run("history", "--profile", "tiny", "--fail-on-regression")
    assert done.returncode == 0
    assert "start with yarnstick run --profile tiny" in done.stdout
    assert not (place.folder / "build").exists(), "looking makes nothing"
    found = json.loads(place.run("history", "--profile", "tiny", "--json").stdout)
    assert (found["runs"], found["series"], found["regression"]) == ([], [], False)


def test_unknown_names_are_one_sentence(copied: Place) -> None:
    assert_one_error(copied.run("history", "--profile", "teeny"), "'teeny' is not in luigi.cfg", "tiny")
    assert "there are some of tiny" in copied.run("history", "--profile", "quick").stdout
    assert_one_error(copied.run("history", "--profile", "tiny", "--since", "Q"), "run Q is no run of profile tiny")


def test_a_damaged_run_hides_no_other(copied: Place) -> None:
    (copied.store / "runs" / "bad").mkdir()
    (copied.store / "runs" / "bad" / "run.json").write_text("{")
    again(copied, "torn", days=1)
    (copied.store / "runs" / "torn" / "report" / "epochs.parquet").write_bytes(b"PAR1")
    done = copied.run("history", "--profile", "tiny")
    assert done.returncode == 0, done.stderr
    assert "run.json is damaged" in done.stdout
    assert "Traceback" not in done.stderr
    assert "1 run of profile tiny" in done.stdout


def rewritten(place: Place, name: str, table: pa.Table) -> None:
    pq.write_table(table, place.store / "runs" / name / "report" / "epochs.parquet")


def test_records_of_another_version_are_read_as_far_as_they_tell(copied: Place) -> None:
    again(copied, "old", days=1)
    rewritten(copied, "old", epochs_table(copied, "old").drop_columns(["staleness", "divergence", "tainted"]))
    done = copied.run("history", "--profile", "tiny")
    assert done.returncode == 0, done.stderr
    assert "2 runs of profile tiny" in done.stdout
    assert "Note:" not in done.stdout


def without_names(table: pa.Table) -> pa.Table:
    return table.drop_columns(["run_id"])


def with_words(table: pa.Table) -> pa.Table:
    return table.set_column(table.column_names.index("seconds"), "seconds", pa.array(["x"] * len(table)))


def of_nobody(table: pa.Table) -> pa.Table:
    return table.set_column(table.column_names.index("platform"), "platform", pa.nulls(len(table), pa.string()))


@pytest.mark.parametrize("changed", [without_names, with_words, of_nobody])
def test_records_that_cannot_be_read_cost_their_own_run_and_a_sentence(
    copied: Place, changed: Callable[[pa.Table], pa.Table]
) -> None:
    again(copied, "odd", days=1)
    rewritten(copied, "odd", changed(epochs_table(copied, "odd")))
    assert "epochs.parquet cannot be read" in said_of_the_odd(copied)


def test_settings_that_cannot_be_read_cost_their_own_run_and_a_sentence(copied: Place) -> None:
    again(copied, "odd", days=1)
    path = copied.store / "runs" / "odd" / "run.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | {"settings": about["settings"] | {"yarnstick.baseline.threads": "many"}}))
    assert "run odd cannot be read" in said_of_the_odd(copied)


def said_of_the_odd(place: Place) -> str:
    looked = look(LocalStore(place.store), "tiny")
    assert looked.history is not None
    assert [each.entry.run_id for each in looked.history.runs] == ["R"]
    [(run, said)] = looked.damaged.items()
    assert (run, "\n" in said) == ("odd", False)
    assert "yarnstick report --run-id odd" in said
    return said


def test_all_of_it_is_exported_as_json(copied: Place) -> None:
    target = copied.folder / "history.json"
    done = copied.run("history", "--profile", "tiny", "--export-json", str(target))
    assert done.returncode == 0, done.stderr
    found = json.loads(target.read_text())
    assert json.loads(copied.run("history", "--profile", "tiny", "--export-json", "-").stdout) == found
    [run] = found["runs"]
    assert run["run_id"] == "R"
    assert run["versions"]["torch"]
    assert all(len(point["trial_seconds"]) == 2 for each in found["series"] for point in each["points"])
    nowhere = str(copied.folder / "none" / "history.json")
    assert_one_error(copied.run("history", "--profile", "tiny", "--export-json", nowhere), "cannot be written")


def test_the_page_is_the_same_for_the_same_runs_and_holds_no_name_as_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    runs = [entry(n, measured(noisy(n, 1.0), platform=evil), commit=evil, versions={evil: str(n)}) for n in range(3)]
    store = LocalStore(tmp_path)
    found = history(runs, profile=evil)
    path = Path(publish_page(store, found))
    first = path.read_bytes()
    assert publish_page(store, found) == str(path)
    assert path.read_bytes() == first
    assert b"<script" not in first
    assert b"&lt;script&gt;" in first
