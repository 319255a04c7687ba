"""Both jobs on a real YARN: the same results as on the inline runner, and what goes wrong told as it is."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from cluster.lifecycle import Cluster
from mapreduce.mr_pixel_range import MRPixelRange
from mapreduce.on_hadoop import Errand, News, run_on_hadoop
from pipeline.config import read_settings
from pipeline.datasets import ingest as ingest_module
from pipeline.datasets.ingest import ingest
from pipeline.datasets.jobs import hadoop_cluster, run_job
from pipeline.datasets.normalize import find_range, normalize
from pipeline.datasets.pack import open_dataset, pack
from pipeline.datasets.sources import dataset_slug, source
from pipeline.opening import open_store, reach
from pipeline.orphans import end_what_is_left
from pipeline.settings import Settings
from store.errors import DataError, StoreError, TrialError
from store.local import LocalStore
from store.manifest import read_manifest
from store.protocol import Store
from store.publish import Staging, temporary_name
from tests.cluster.test_resource_manager import occupied, until
from tests.pipeline.place import TOP, kill_whole
from yarn.resource_manager import ResourceManager
from yarn.submission import LIVING

ENDED_SECONDS = 30
ROWS = [b"0,128,255,1", b"3,4,5,0", b"254,0,7,2", b"9,9,9,1", b"1,2,3,0"]


@pytest.fixture
def settings(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """As a user of the cluster has them who asks for MapReduce there."""
    for name, value in cluster.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    url = f"{os.environ['YARNSTICK_STORE']}/{tmp_path.name}"
    return read_settings("quick", overrides=["mapreduce.runner=hadoop", f"cache={tmp_path / 'cache'}"], store=url)


@pytest.fixture
def store(settings: Settings) -> Store:
    return open_store(settings)


@pytest.fixture
def manager(settings: Settings) -> ResourceManager:
    return ResourceManager.of((), reach(settings).access)


@pytest.fixture
def errand(settings: Settings) -> Callable[..., Errand]:
    def made(job: str, *arguments: str, inputs: str = "in/part-*", **changed: object) -> Errand:
        return Errand(
            job=job,
            arguments=arguments,
            inputs=(inputs,),
            output=f"out-{temporary_name()}",
            work=temporary_name(),
            reach=reach(settings),
            cluster=replace(hadoop_cluster(settings), **changed),
            parent=os.getpid(),
        )

    return made


def ignore(news: News) -> None:
    """Nobody looks."""


def output(store: Store, path: str) -> list[bytes]:
    names = [entry.name for entry in store.list(path) if entry.name.startswith("part-")]
    return [store.read(f"{path}/{name}") for name in names]


def living(manager: ResourceManager) -> list[str]:
    return [each.id for each in manager.applications(states=LIVING)]


def wait_until_none_lives(manager: ResourceManager, *, but: str | None = None) -> None:
    deadline = time.monotonic() + ENDED_SECONDS
    while left := set(living(manager)) - {but}:
        assert time.monotonic() < deadline, left
        time.sleep(0.5)


RANGE = "mapreduce.mr_pixel_range:MRPixelRange"
NORMALIZE = "mapreduce.mr_normalize:MRNormalize"


def test_marks_and_line_ends_and_gzip_members_are_read_as_everywhere(
    errand: Callable[..., Errand], store: Store, tmp_path: Path
) -> None:
    """FAULTS 9 and 10, in one job: three files of the same rows, each in another form."""
    locks = "wrapper.lock.*"
    before = set(Path("/tmp").glob(locks))  # noqa: S108
    plain = b"\n".join(ROWS) + b"\n"
    store.write("in/part-00000", b"\xef\xbb\xbf" + b"\r\n".join(ROWS) + b"\r\n")
    store.write("in/part-00001", b"\r".join(ROWS))
    store.write("in/part-00002.gz", gzip.compress(plain) + gzip.compress(plain))
    wanted = errand(RANGE, "--classes", "3")
    run_on_hadoop(wanted, listener=ignore)
    found = json.loads(b"".join(output(store, wanted.output)))
    assert found == {"rows": 20, "minimum": [0, 0, 3], "maximum": [254, 128, 255]}

    store.write("range.json", json.dumps(found).encode())
    named = ("--range", str(store.local("range.json")), "--classes", "3")
    wanted = errand(NORMALIZE, *named)
    run_on_hadoop(wanted, listener=ignore)
    parts = output(store, wanted.output)
    inline = tmp_path / "plain.csv"
    inline.write_bytes(plain)
    job = [sys.executable, "-m", "mapreduce.mr_normalize", *named, "--no-conf", "-q", str(inline)]
    expected = subprocess.run(job, cwd=TOP, capture_output=True, check=True).stdout
    assert parts == [expected, expected, expected + expected]
    assert not [entry for entry in store.list("") if entry.name.startswith(".")]
    assert set(Path("/tmp").glob(locks)) == before, "mrjob's own lock would stay on every node"  # noqa: S108


def test_the_same_data_whoever_runs_the_jobs(
    settings: Settings, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several parts, of which Hadoop takes the largest first: the order is kept all the same."""
    monkeypatch.setattr(ingest_module, "PART_BYTES", 1)
    data = tmp_path / "own.csv"
    rows = [f"{(7 * n) % 256},{n % 251},{n * n % 199},{n % 3}" for n in range(90_000)]
    data.write_text("\n".join(rows) + "\n")
    inline = read_settings("quick", overrides=["mapreduce.runner=inline"], store=str(tmp_path / "store"))
    here = LocalStore(tmp_path / "store")
    prepared = {}
    for given, where in ((settings, store), (inline, here)):
        made = source(f"csv:{data}", given, progress=None)
        slug = dataset_slug(made, given)
        for step in (lambda: ingest(made, where, slug), lambda: find_range(where, slug, given)):  # noqa: B023
            step()
        normalize(where, slug, given)
        pack(where, slug, given)
        prepared[where.url] = (slug, where)
    (slug, there), (_, also) = prepared.values()
    assert there.read(f"data/{slug}/range.json") == also.read(f"data/{slug}/range.json")
    for split in ("train", "test"):
        parts = [entry.name for entry in there.list(f"data/{slug}/normalized/{split}")]
        assert len(parts) > 1
        for name in parts:
            path = f"data/{slug}/normalized/{split}/{name}"
            assert there.read(path) == also.read(path), path
    one, other = (open_dataset(where, slug, "own") for where in (there, also))
    for mine, theirs in ((one.read_train(1.0), other.read_train(1.0)), (one.read_test(), other.read_test())):
        assert (mine[0] == theirs[0]).all()
        assert (mine[1] == theirs[1]).all()


def test_output_without_hadoops_marker_is_not_taken(settings: Settings, store: Store, tmp_path: Path) -> None:
    """FAULTS 18: whatever is there, nobody said that it is all."""
    (tmp_path / "own.csv").write_text("1,2,0\n3,4,1\n" * 20)
    made = source(f"csv:{tmp_path / 'own.csv'}", settings, progress=None)
    slug = dataset_slug(made, settings)
    ingest(made, store, slug)
    path = f"data/{slug}/csv/train"
    unmarked = ("-Dmapreduce.fileoutputcommitter.marksuccessfuljobs=false",)
    with Staging(store, f"data/{slug}/range") as staging, pytest.raises(StoreError, match="has no _SUCCESS"):
        run_job(
            MRPixelRange,
            path,
            read_manifest(store, path),
            settings=settings,
            store=store,
            staging=staging,
            arguments=unmarked,
        )
    assert store.leftovers() == ()
    assert [entry.name for entry in store.list(f"data/{slug}")] == ["csv"]


def test_a_bad_row_is_named_with_its_line(errand: Callable[..., Errand], store: Store) -> None:
    """In the second split of a file, whose task does not know how many lines are before it."""
    lines = [b"1,2,3,0"] * 50_000
    lines[40_000] = b"1,2,x,0"
    store.write("in/part-00000", b"\n".join(lines) + b"\n")
    wanted = errand(RANGE, "--columns", "3", "-Dmapreduce.input.fileinputformat.split.maxsize=200000")
    with pytest.raises(DataError) as raised:
        run_on_hadoop(wanted, listener=ignore)
    assert str(raised.value) == f"{store.url}/in/part-00000:40001: column 3 holds 'x', which is not a number"


def test_nodes_without_that_python_say_so(errand: Callable[..., Errand], store: Store) -> None:
    """FAULTS 42: the task's own last words, and the command that shows all of them."""
    store.write("in/part-00000", b"1,2,3,0\n")
    with pytest.raises(TrialError, match=r"/nowhere/python.*not found.*yarn logs -applicationId application_\d+_\d+"):
        run_on_hadoop(errand(RANGE, python="/nowhere/python"), listener=ignore)


def test_a_queue_without_room_is_left_after_a_while(
    errand: Callable[..., Errand], store: Store, manager: ResourceManager
) -> None:
    """FAULTS 31: nothing is left that would start when the queue is free again."""
    store.write("in/part-00000", b"1,2,3,0\n")
    wanted = errand(RANGE, queue="narrow", accepted_seconds=4.0)
    with occupied(manager, "narrow") as other:
        with pytest.raises(TrialError, match=r"queue narrow had no room for application_.* within 4 s"):
            run_on_hadoop(wanted, listener=ignore)
        wait_until_none_lives(manager, but=other)


def parent_of(errand: Errand) -> subprocess.Popen[bytes]:
    """A process that asks for a job which waits in its queue for ever."""
    code = (
        "import msgspec, os, signal, sys\n"
        "from dataclasses import replace\n"
        "from mapreduce.on_hadoop import Errand, _path, run_on_hadoop\n"
        # As from a terminal: whoever is started in the background may have inherited that it is ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "wanted = msgspec.json.decode(sys.stdin.buffer.read(), type=Errand, dec_hook=_path)\n"
        "run_on_hadoop(replace(wanted, parent=os.getpid()), listener=lambda news: None)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, cwd=TOP, start_new_session=True)
    assert parent.stdin
    parent.stdin.write(msgspec.json.encode(errand, enc_hook=str))
    parent.stdin.close()
    return parent


@dataclass(frozen=True)
class Waiting:
    """A job that is in its queue by now."""

    parent: subprocess.Popen[bytes]
    other: str  # the application that it waits for


@pytest.fixture
def waiting(errand: Callable[..., Errand], store: Store, manager: ResourceManager) -> Iterator[Waiting]:
    store.write("in/part-00000", b"1,2,3,0\n")
    wanted = errand(RANGE, queue="narrow", accepted_seconds=600.0)
    with occupied(manager, "narrow") as other:
        parent = parent_of(wanted)
        try:
            until(lambda: set(living(manager)) - {other})
            yield Waiting(parent, other)
        finally:
            parent.kill()
            parent.wait()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_no_application_outlives_who_asked_for_it(
    how: signal.Signals, waiting: Waiting, manager: ResourceManager
) -> None:
    waiting.parent.send_signal(how)
    waiting.parent.wait(ENDED_SECONDS)
    wait_until_none_lives(manager, but=waiting.other)


def test_what_outlives_all_of_them_is_ended_before_the_next_job(
    waiting: Waiting, settings: Settings, manager: ResourceManager
) -> None:
    """Spark is not on YARN here, whose first session would end it too."""
    kill_whole(waiting.parent)
    assert set(living(manager)) > {waiting.other}
    end_what_is_left(settings)
    wait_until_none_lives(manager, but=waiting.other)
