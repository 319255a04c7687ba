"""The store on a real HDFS: what every store promises, and the faults that only real daemons show."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cluster.lifecycle import Cluster
from store.addresses import place_of
from store.errors import StoreError
from store.manifest import read_manifest, verify_checksums
from store.namenodes import Access
from store.publish import Staging
from store.retry import Patience
from store.slug import slug
from store.webhdfs import WebHdfsStore
from tests.store.test_conformance import *  # noqa: F403  # the whole suite, over this file's `store`

PATIENT = Patience(seconds=120)
ONCE = Patience(seconds=0)
TRIAL = "runs/a/trials/t-1"
MANY = 1_200  # more than the NameNode gives in one piece to its own clients
STAGES = {
    "in a small part": "staging.create('part-0').write(b'x' * 100_000); here()",
    "in a large part": "staging.create('part-0').write(b'x' * 20_000_000); wait_for(store, staging); here()",
    "after a part": "staging.put('part-0', b'x'); here()",
    "after the manifest": "staging.put('part-0', b'x'); store.rename = lambda *_: here(); staging.commit()",
}
CHILD = """
import sys, time
from pathlib import Path
from tests.cluster.test_store import opened
from store.publish import Staging

def here():
    print("here", flush=True)
    time.sleep(60)

def wait_for(store, staging):
    while not store.exists(staging._temporary):
        pass

store = opened(sys.argv[1], Path(sys.argv[2]))
with Staging(store, "runs/a") as staging:
    {stage}
"""
LARGE = """
import resource, sys
from pathlib import Path
from tests.cluster.test_store import opened
from store.publish import Staging

def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

store = opened(sys.argv[1], Path(sys.argv[2]))
store.write("warm", b"x" * 100_000), store.read("warm")
before = peak_mb()
with Staging(store, "large") as staging:
    with staging.create("part-0") as part:
        for number in range(300):
            part.write(bytes([number % 256]) * 1_000_000)
    staging.commit()
print(store.local("large/part-0").stat().st_size)
print(peak_mb() - before)
"""


def opened(url: str, cache: Path, *, user: str = "", patience: Patience = PATIENT) -> WebHdfsStore:
    access = Access(security="insecure", user=user, patience=patience)
    return WebHdfsStore(place_of(url, namenodes=()), access, cache=cache, most_cached_bytes=10**9)


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """A directory of the test's own."""
    return f"{os.environ['YARNSTICK_STORE']}-tests/{slug(request.node.name)}"


@pytest.fixture
def store(url: str, tmp_path: Path) -> Iterator[WebHdfsStore]:
    made = opened(url, tmp_path)
    yield made
    made.remove("")


@pytest.fixture
def client(store: WebHdfsStore) -> Any:
    """hdfs's own, for what the store never does."""
    return store._namenodes._client(place_of(store.url, namenodes=()).namenodes[0])


def root(store: WebHdfsStore) -> str:
    return place_of(store.url, namenodes=()).root


def publish(store: WebHdfsStore, content: bytes = b"content") -> bool:
    with Staging(store, TRIAL) as staging:
        staging.put("part-0", content)
        return staging.commit()


def dfsadmin(*arguments: str) -> None:
    subprocess.run(["hdfs", "dfsadmin", *arguments], check=True, capture_output=True)


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES.keys())
def test_a_killed_process_leaves_nothing_visible_and_is_cleaned_up_after(
    store: WebHdfsStore, url: str, tmp_path: Path, stage: str
) -> None:
    command = [sys.executable, "-c", CHILD.format(stage=stage), url, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n"
        assert store.collect() == 0, "its owner still lives"
        os.kill(child.pid, signal.SIGKILL)
    assert not store.exists("runs/a")
    assert store.list("runs") == []
    assert store.collect() == (0 if stage == STAGES["in a small part"] else 1)
    assert store.leftovers() == ()
    with Staging(store, "runs/a") as staging:
        staging.put("part-0", b"again")
        assert staging.commit()


def test_a_large_file_goes_through_little_memory(store: WebHdfsStore, url: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LARGE, url, str(tmp_path)], capture_output=True, text=True, check=True)
    size, grown_mb = done.stdout.split()
    assert int(size) == 300_000_000
    assert float(grown_mb) < 60


def test_many_entries_are_one_request(store: WebHdfsStore, client: Any) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: client.makedirs(f"{root(store)}/many/{number}"), range(MANY)))
    asked: list[str] = []
    client._session.hooks["response"].append(lambda response, **_: asked.append(response.url))
    assert len(store.list("many")) == MANY
    assert len(asked) == 1


def test_the_rename_without_options_would_nest_and_ours_does_not(store: WebHdfsStore, client: Any) -> None:
    """Why it is never used: the NameNode moves into a directory that is there, and calls that a success."""
    assert publish(store)
    client.makedirs(f"{root(store)}/other")
    assert client._rename(f"{root(store)}/other", destination=f"{root(store)}/{TRIAL}").json()["boolean"]
    assert store.exists(f"{TRIAL}/other")
    client.makedirs(f"{root(store)}/another")
    assert not store.rename("another", TRIAL)
    assert not store.exists(f"{TRIAL}/another")
    assert store.exists("another")


def test_somebody_elses_place_is_named_as_such(url: str, store: WebHdfsStore, tmp_path: Path) -> None:
    assert publish(store)
    stranger = opened(url, tmp_path, user="stranger", patience=ONCE)
    with pytest.raises(StoreError, match=r"a/b cannot be written: stranger has no permission \(Permission denied"):
        stranger.write("a/b", b"x")
    with pytest.raises(StoreError, match=r"part-0 cannot be removed: stranger has no permission"):
        stranger.remove(f"{TRIAL}/part-0")
    assert store.read(f"{TRIAL}/part-0") == b"content"


@pytest.mark.parametrize("size", [1_000, 40_000_000])
@pytest.mark.parametrize(("kind", "quota"), [("-setQuota", 1), ("-setSpaceQuota", 1_000_000)])
def test_a_quota_is_one_sentence_and_leaves_nothing(
    store: WebHdfsStore, client: Any, kind: str, quota: int, size: int
) -> None:
    client.makedirs(f"{root(store)}/small")
    dfsadmin(kind, str(quota), f"{root(store)}/small")

    def filled() -> None:
        with Staging(store, "small/t") as staging:
            staging.put("part-0", b"x" * size)
            staging.commit()

    with pytest.raises(StoreError, match=r"part-0 cannot be written: the quota of HDFS is used up \(.*; make room"):
        filled()
    with pytest.raises(StoreError, match=r"small/state cannot be written: the quota of HDFS is used up"):
        store.write("small/state", b"x" * size)
    assert client.list(f"{root(store)}/small") == []


def test_a_file_that_is_still_written_is_not_read(store: WebHdfsStore, client: Any) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def slowly() -> Iterator[bytes]:
        yield b"x" * 100_000
        begun.set()
        goes_on.wait(60)

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(client.write, f"{root(store)}/slow", data=slowly())
        assert begun.wait(60)
        try:
            # The NameNode knows of it only once the first bytes have arrived.
            while not store.exists("slow"):
                pass
            with pytest.raises(StoreError, match="slow was never closed: its writer is still at it, or died"):
                store.read("slow")
        finally:
            goes_on.set()
        written.result()
    assert len(store.read("slow")) == 100_000


def test_safe_mode_is_waited_for_and_else_named(store: WebHdfsStore, url: str, tmp_path: Path) -> None:
    assert publish(store)
    dfsadmin("-safemode", "enter")
    try:
        impatient = opened(url, tmp_path, patience=ONCE)
        assert impatient.read(f"{TRIAL}/part-0") == b"content"
        with pytest.raises(StoreError, match=r"a/state cannot be written: the NameNode .* is in safe mode"):
            impatient.write("a/state", b"x")
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(store.write, "a/state", b"x")
            dfsadmin("-safemode", "leave")
            written.result()
    finally:
        dfsadmin("-safemode", "leave")
    assert store.read("a/state") == b"x"


def test_a_namenode_that_restarts_is_waited_for(broken: Cluster, store: WebHdfsStore) -> None:
    """It is killed in the middle of publishing, with everything uploaded but the rename."""
    with Staging(store, TRIAL) as staging:
        staging.put("part-0", b"content")
        rename = store.rename

        def killed_before(source: str, target: str) -> bool:
            broken.kill("namenode")
            return rename(source, target)

        store.rename = killed_before  # type: ignore[method-assign]
        with ThreadPoolExecutor(1) as pool:
            committed = pool.submit(staging.commit)
            while broken.status()["namenode"] is not None:
                pass
            broken.up()
            assert committed.result()
    verify_checksums(store, TRIAL, read_manifest(store, TRIAL))


def test_a_namenode_that_is_gone_is_named(broken: Cluster, store: WebHdfsStore, url: str, tmp_path: Path) -> None:
    assert publish(store)
    broken.kill("namenode")
    address = broken.web("namenode")
    with pytest.raises(StoreError, match=f"{address} takes no connection; start HDFS, or correct yarnstick.store.url"):
        opened(url, tmp_path).list("runs")
    broken.up()
    assert store.read(f"{TRIAL}/part-0") == b"content"


def test_a_datanode_that_dies_while_it_sends_is_replaced_by_another(broken: Cluster, store: WebHdfsStore) -> None:
    content = os.urandom(1_000_000) * 150
    assert publish(store, content)
    with store.open(f"{TRIAL}/part-0") as file:
        received = file.read(1_000_000)
        serving: str = file.raw._response.url  # type: ignore[attr-defined]
        (name,) = [each for each in broken.status() if "datanode" in each and broken.web(each) in serving]
        broken.kill(name)
        received += file.read()
    assert received == content
    # The NameNode does not know yet that it is dead.
    assert store.rename("runs/a", "runs/b")
    assert publish(store, content)
    verify_checksums(store, TRIAL, read_manifest(store, TRIAL))
