"""Logs as files: every form that Spark writes, cut, damaged and empty."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models import event_files
from models.event_files import Lines, LogFiles, is_rolling, looks_like_a_log
from store.errors import DataError
from tests.models.spark_logs import FORMS, RECORDED, lz4_blocks, zstd_frames

CODECS = RECORDED.parent / "codecs"
LOG = b"".join(b'{"Event":"SparkListenerX","n":%d}\n' % number for number in range(5000))


def read(path: Path) -> tuple[bytes, bool]:
    lines = Lines(LogFiles.at(path))
    return b"".join(line + b"\n" for _, _, line in lines), lines.cut


def sentence(path: Path) -> str | None:
    """What is said of a log that cannot be read."""
    try:
        read(path)
    except DataError as error:
        return str(error)
    return None


@pytest.mark.parametrize("suffix", FORMS)
def test_every_form_has_the_same_lines(tmp_path: Path, suffix: str) -> None:
    log = tmp_path / f"app{suffix}"
    log.write_bytes(FORMS[suffix](LOG))
    assert read(log) == (LOG, False)
    assert looks_like_a_log(log)


def test_what_sparks_own_codecs_wrote_is_one_text() -> None:
    """Compressed by Spark 4.3's codec classes, flushed every 25 lines as a running application does."""
    texts = {suffix: read(CODECS / f"app-20261118141619-0000.{suffix}") for suffix in ("zstd", "lz4")}
    assert texts["zstd"] == texts["lz4"]
    assert texts["zstd"][0].startswith(b'{"Event":"SparkListenerLogStart","Spark Version":"4.3.0"}\n')


@pytest.mark.parametrize("codec", ["snappy", "lzf"])
def test_a_codec_that_is_not_read_is_named(codec: str) -> None:
    log = CODECS / f"app-20261118141619-0000.{codec}"
    assert looks_like_a_log(log), "in a directory it is told, not passed over"
    with pytest.raises(DataError, match=rf"\.{codec} is compressed with {codec}, .*compression.codec=zstd"):
        read(log)


def test_an_archive_is_to_be_unpacked(tmp_path: Path) -> None:
    log = tmp_path / "eventLogs-app.zip"
    log.write_bytes(b"PK\3\4rest")
    with pytest.raises(DataError, match="is a ZIP archive; unpack it first"):
        read(log)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(suffix=st.sampled_from(sorted(FORMS)), share=st.floats(0, 1))
def test_a_cut_log_gives_what_was_written_and_is_never_an_error(tmp_path: Path, suffix: str, share: float) -> None:
    whole = FORMS[suffix](LOG)
    log = tmp_path / "cut"
    log.write_bytes(whole[: max(1, int(share * len(whole)))])
    if share * len(whole) < 16:
        return  # too short to tell what it is
    text, _ = read(log)
    assert LOG.startswith(text)
    if not suffix:
        assert len(text) > share * len(LOG) - 50


def test_a_cut_zstd_log_keeps_the_frames_before_the_cut(tmp_path: Path) -> None:
    frames = zstd_frames(LOG, size=1 << 14)
    log = tmp_path / "app.zstd"
    log.write_bytes(frames[:-10])
    text, cut = read(log)
    assert cut
    assert len(text) > len(LOG) - (1 << 14) - 50


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(
    suffix=st.sampled_from(sorted(FORMS)),
    place=st.integers(0, 1 << 30),
    noise=st.binary(min_size=1, max_size=40),
)
def test_damage_is_a_sentence_or_shows_as_other_lines(tmp_path: Path, suffix: str, place: int, noise: bytes) -> None:
    whole = bytearray(FORMS[suffix](LOG[:20_000]))
    place %= len(whole)
    whole[place : place + len(noise)] = noise
    log = tmp_path / "damaged"
    log.write_bytes(bytes(whole))
    said = sentence(log)
    assert said is None or (str(log) in said and "\n" not in said)


def test_a_damaged_lz4_block_names_its_place(tmp_path: Path) -> None:
    log = tmp_path / "app.lz4"
    whole = lz4_blocks(LOG)
    log.write_bytes(whole[:21] + b"\xff" * 200 + whole[221:])
    with pytest.raises(DataError, match="its lz4 block at byte 0 is damaged"):
        read(log)


def test_a_block_that_promises_gigabytes_is_damaged(tmp_path: Path) -> None:
    log = tmp_path / "app.lz4"
    log.write_bytes(event_files.BLOCK.pack(b"LZ4Block", 0x25, 10, 1 << 30, 0) + b"0123456789")
    with pytest.raises(DataError, match="its lz4 block at byte 0 is damaged"):
        read(log)


def rolling(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def test_rolled_files_are_read_by_their_numbers(tmp_path: Path) -> None:
    files = {f"events_{number}_app": b'{"Event":"%d"}\n' % number for number in (10, 9, 1)}
    log = rolling(tmp_path / "eventlog_v2_app", {**files, "appstatus_app": b"", ".events_1_app.crc": b"x"})
    assert is_rolling(log)
    assert read(log)[0] == b'{"Event":"1"}\n{"Event":"9"}\n{"Event":"10"}\n'


def test_a_compacted_file_stands_for_all_before_it(tmp_path: Path) -> None:
    names = ("events_1_app", "events_2_app", "events_2_app.compact", "events_3_app")
    log = rolling(tmp_path / "eventlog_v2_app", {name: f'{{"Event":"{name}"}}\n'.encode() for name in names})
    found = LogFiles.at(log)
    assert [file.name for file in found.files] == ["events_2_app.compact", "events_3_app"]
    assert found.compacted


def test_a_cut_before_another_file_is_damage(tmp_path: Path) -> None:
    log = rolling(tmp_path / "eventlog_v2_app", {"events_1_app": b'{"Event":"a', "events_2_app": b'{"Event":"b"}\n'})
    with pytest.raises(DataError, match="events_1_app ends in the middle of a line and events_2_app follows it"):
        read(log)


def test_an_empty_log_is_told(tmp_path: Path) -> None:
    (tmp_path / "app").touch()
    with pytest.raises(DataError, match="app is empty"):
        read(tmp_path / "app")
    with pytest.raises(DataError, match="eventlog_v2_app is empty"):
        read(rolling(tmp_path / "eventlog_v2_app", {"events_1_app": b""}))


def test_what_is_not_there_and_what_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or directory"):
        LogFiles.at(tmp_path / "nothing")
    with pytest.raises(DataError, match="is no event log: a rolling one has files"):
        LogFiles.at(tmp_path)


def test_a_long_line_of_no_interest_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "CHUNK_BYTES", 10)
    monkeypatch.setattr(event_files, "LONGEST_LINE_BYTES", 50)
    log = tmp_path / "app"
    log.write_bytes(b'{"Event":"%s"}\n{"Event":"b"}\n' % (b"a" * 5000))
    first, second = (line for _, _, line in Lines(LogFiles.at(log)))
    assert len(first) <= 60
    assert second == b'{"Event":"b"}'


def test_other_files_do_not_look_like_a_log(tmp_path: Path) -> None:
    for name, data in {
        "outcome.json": b'{\n "spec": {}}',
        "rows.csv": b"1,2\n",
        "empty": b"",
        "x.gz": b"\x1f\x8bbad",
    }.items():
        (tmp_path / name).write_bytes(data)
        assert not looks_like_a_log(tmp_path / name)
    shutil.copy(CODECS / "app-20261118141619-0000.zstd", tmp_path / "renamed")
    assert looks_like_a_log(tmp_path / "renamed")
