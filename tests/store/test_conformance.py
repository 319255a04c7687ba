"""What every store promises, whatever it is made of: complete or not there, first come first kept, nothing lost."""

from __future__ import annotations

import threading

import pytest

from store.errors import StoreError
from store.manifest import MANIFEST, read_manifest, verify_checksums
from store.protocol import Store
from store.publish import Staging

PATH = "runs/a/trials/t-1"


def publish(store: Store, path: str = PATH, content: bytes = b"first") -> bool:
    with Staging(store, path) as staging:
        staging.put("part-0", content, rows=2)
        return staging.commit(note=content.decode())


def names(store: Store, path: str) -> list[str]:
    return [entry.name for entry in store.list(path)]


def test_a_directory_that_is_not_there_lists_as_empty(store: Store) -> None:
    assert store.list("no/such") == []
    assert not store.exists("no/such")


def test_reading_what_is_not_there_names_it(store: Store) -> None:
    with pytest.raises(StoreError, match="no/such is not there"):
        store.read("no/such")
    with pytest.raises(StoreError, match="no/such is not there"):
        store.local("no/such")


def test_what_cannot_be_listed_is_not_taken_for_empty(store: Store) -> None:
    store.write("a/file", b"x")
    with pytest.raises(StoreError, match="a/file"):
        store.list("a/file")


def test_a_file_is_replaced_as_a_whole(store: Store) -> None:
    store.write("a/state.json", b"old")
    with store.open("a/state.json") as before:
        store.write("a/state.json", b"new and longer")
        assert before.read() == b"old"
    assert store.read("a/state.json") == b"new and longer"
    assert store.local("a/state.json").read_bytes() == b"new and longer"
    assert names(store, "a") == ["state.json"]


def test_of_a_file_that_grows_the_rest_is_read(store: Store) -> None:
    store.write("a/log", b"0123456789")
    assert [store.tail("a/log", start) for start in (0, 4, 9, 10)] == [b"0123456789", b"456789", b"9", b""]
    store.write("a/empty", b"")
    assert store.tail("a/empty", 0) == b""
    with pytest.raises(StoreError, match="no/such is not there"):
        store.tail("no/such", 0)


def test_a_listing_is_sorted_and_tells_sizes(store: Store) -> None:
    for name in ("b", "a", "c/d"):
        store.write(f"x/{name}", b"12345")
    listed = store.list("x")
    assert [(entry.name, entry.is_directory) for entry in listed] == [("a", False), ("b", False), ("c", True)]
    assert listed[0].bytes == 5


def test_many_files_are_read_in_the_order_of_their_names(store: Store) -> None:
    for number in range(12):
        store.write(f"x/{number}", str(number).encode())
    asked = [f"x/{number}" for number in (7, 3, 11, 3)]
    assert list(store.read_each(asked)) == [b"7", b"3", b"11", b"3"]
    with pytest.raises(StoreError, match="x/12 is not there"):
        list(store.read_each(["x/1", "x/12"]))
    assert list(store.read_each([])) == []


def test_nothing_is_visible_before_the_commit(store: Store) -> None:
    with Staging(store, PATH) as staging:
        staging.put("part-0", b"x")
        assert not store.exists(PATH)
        assert names(store, "runs/a/trials") == []
        assert staging.commit()
        assert store.exists(PATH)
    assert names(store, "runs/a/trials") == ["t-1"]


def test_without_a_commit_nothing_stays(store: Store) -> None:
    def interrupted() -> None:
        with Staging(store, PATH) as staging:
            staging.create("part-0").write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not store.exists(PATH)
    assert store.collect() == 0


def test_the_second_commit_is_refused_and_the_first_stays(store: Store) -> None:
    assert publish(store, content=b"first")
    assert not publish(store, content=b"second")
    assert store.read(f"{PATH}/part-0") == b"first"
    assert read_manifest(store, PATH).facts == {"note": "first"}
    assert names(store, "runs/a/trials") == ["t-1"]
    assert names(store, PATH) == [MANIFEST, "part-0"]


def test_of_many_at_once_one_commits(store: Store) -> None:
    start = threading.Barrier(8)
    won: list[bytes] = []

    def race(number: int) -> None:
        content = str(number).encode()
        with Staging(store, PATH) as staging:
            staging.put("part-0", content)
            start.wait()
            if staging.commit():
                won.append(content)

    racers = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert won == [store.read(f"{PATH}/part-0")]
    assert names(store, PATH) == [MANIFEST, "part-0"]


def test_a_part_that_is_still_open_cannot_be_published(store: Store) -> None:
    with Staging(store, PATH) as staging:
        staging.create("part-0")
        with pytest.raises(StoreError, match="part-0 is still open"):
            staging.commit()
    assert not store.exists(PATH)


def test_a_part_is_written_once(store: Store) -> None:
    with Staging(store, PATH) as staging:
        staging.put("part-0", b"x")
        with pytest.raises(StoreError, match="part-0"):
            staging.create("part-0")


def test_the_manifest_knows_rows_and_bytes(store: Store) -> None:
    with Staging(store, PATH) as staging:
        with staging.create("part-0") as part:
            part.write(b"1,2\n")
            part.write(memoryview(b"3,4\n"))
            part.rows = 2
        staging.put("eventlog/app-1/events_1", b"e")
        staging.commit(columns=2)
    manifest = read_manifest(store, PATH)
    assert (manifest.rows, manifest.facts) == (2, {"columns": 2})
    assert [part.name for part in manifest.parts] == ["part-0", "eventlog/app-1/events_1"]
    verify_checksums(store, PATH, manifest)


def test_parts_that_another_program_wrote_are_taken_over(store: Store) -> None:
    with Staging(store, PATH) as staging:
        for name, content in (("part-b", b"1\n2\n3\n"), ("part-a", b"4\n")):
            store.write(f"{staging.temporary}/{name}", content)
        assert [part.rows for part in staging.adopt(["part-a", "part-b"])] == [1, 3]
        staging.commit(note="adopted")
    manifest = read_manifest(store, PATH)
    assert [(part.name, part.rows, part.bytes) for part in manifest.parts] == [("part-a", 1, 2), ("part-b", 3, 6)]
    verify_checksums(store, PATH, manifest)


def test_a_missing_part_is_noticed(store: Store) -> None:
    publish(store)
    store.remove(f"{PATH}/part-0")
    with pytest.raises(StoreError, match=r"part-0: no such file, but manifest\.json lists 5 bytes; remove"):
        read_manifest(store, PATH)


def test_a_part_too_many_is_noticed(store: Store) -> None:
    publish(store)
    store.write(f"{PATH}/part-1", b"12")
    with pytest.raises(StoreError, match=r"part-1: 2 bytes, but manifest\.json lists no such file"):
        read_manifest(store, PATH)


def test_a_part_of_another_size_is_noticed(store: Store) -> None:
    publish(store)
    store.write(f"{PATH}/part-0", b"longer than first")
    with pytest.raises(StoreError, match="part-0: 17 bytes, but"):
        read_manifest(store, PATH)


def test_a_changed_part_of_the_same_size_is_noticed_by_its_checksum(store: Store) -> None:
    publish(store)
    store.write(f"{PATH}/part-0", b"fIrst")
    with pytest.raises(StoreError, match=r"part-0: SHA-256 .* is not the"):
        verify_checksums(store, PATH, read_manifest(store, PATH))


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"parts": [{}]}'])
def test_a_damaged_manifest_is_named(store: Store, damage: bytes) -> None:
    publish(store)
    store.write(f"{PATH}/{MANIFEST}", damage)
    with pytest.raises(StoreError, match=r"manifest\.json is damaged .*remove"):
        read_manifest(store, PATH)


def test_removing_takes_a_file_a_directory_and_nothing(store: Store) -> None:
    publish(store)
    store.write("runs/a/state", b"x")
    for path in ("runs/a/state", "runs/a", "runs/a"):
        store.remove(path)
        assert not store.exists(path)


@pytest.mark.parametrize("path", ["../outside", "a/../../outside", "/outside"])
def test_no_path_leads_out_of_the_store(store: Store, path: str) -> None:
    with pytest.raises(StoreError, match="is not a path inside"):
        store.write(path, b"x")
    with pytest.raises(StoreError, match="is not a path inside"):
        store.remove(path)


def test_the_leftovers_of_a_living_process_stay(store: Store) -> None:
    with Staging(store, PATH) as staging:
        staging.put("part-0", b"x")
        assert store.collect() == 0
        assert staging.commit()
    verify_checksums(store, PATH, read_manifest(store, PATH))
