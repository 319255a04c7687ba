"""One trial at a time on this host: the lease excludes, ends with its process, and says what is wrong with its file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.lease import StillHeldError, holders, lease_file, measuring_lease
from store.errors import SettingError
from tests.pipeline.place import TOP, eventually

NOBODY = 65534


def start(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    code = "import os, sys, time\nfrom pathlib import Path\nfrom pipeline.lease import measuring_lease\n" + code
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(TOP)})


HOLD = """
with measuring_lease(Path(sys.argv[1]), waiting=lambda: Path(sys.argv[2] + ".waits").touch()):
    Path(sys.argv[2]).touch()
    time.sleep(float(sys.argv[3]))
"""
TAKE_TURNS = """
log = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for turn in range(15):
    with measuring_lease(Path(sys.argv[1]), waiting=lambda: None):
        os.write(log, b"in " + sys.argv[3].encode() + b"\\n")
        time.sleep(0.01)
        os.write(log, b"out " + sys.argv[3].encode() + b"\\n")
    time.sleep(0.01)
"""


def test_two_processes_are_never_inside_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    both = [start(TAKE_TURNS, tmp_path / "lease", log, who) for who in "AB"]
    assert [process.wait(60) for process in both] == [0, 0]
    lines = log.read_text().splitlines()
    assert len(lines) == 60
    assert lines[1::2] == [line.replace("in", "out") for line in lines[::2]]


def test_patience_ends_and_the_holder_is_named(tmp_path: Path) -> None:
    lease, holds = tmp_path / "lease", tmp_path / "holds"
    assert holders(lease) == []
    holder = start(HOLD, lease, holds, 600)
    try:
        eventually(holds.exists)
        assert holders(lease) == [holder.pid]
        with pytest.raises(StillHeldError), measuring_lease(lease, waiting=lambda: None, patience=0.3):
            pass
    finally:
        holder.kill()
        holder.wait()
    assert holders(lease) == []
    with measuring_lease(lease, waiting=pytest.fail, patience=0.0):
        assert holders(lease) == [os.getpid()]


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    lease, holds, follows = tmp_path / "lease", tmp_path / "holds", tmp_path / "follows"
    first = start(HOLD, lease, holds, 600)
    eventually(holds.exists)
    second = start(HOLD, lease, follows, 0)
    eventually((tmp_path / "follows.waits").exists)
    assert not follows.exists()
    first.send_signal(signal.SIGKILL)
    assert second.wait(60) == 0
    assert follows.exists()
    first.wait()


def test_it_is_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), measuring_lease(tmp_path / "lease", waiting=pytest.fail):
        raise KeyboardInterrupt
    with measuring_lease(tmp_path / "lease", waiting=pytest.fail):
        pass


def test_the_file_of_another_user_can_be_locked(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can start a process of another user")
    for folder in (tmp_path, *tmp_path.parents):
        if "pytest-of-" in str(folder):  # pytest's own, of which there is one more where tests run side by side
            folder.chmod(0o755)
    with measuring_lease(tmp_path / "lease", waiting=pytest.fail):
        pass
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    assert start(f"os.setuid({NOBODY})\n{HOLD}", tmp_path / "lease", theirs / "done", 0).wait(60) == 0


def test_where_it_is_not_set_it_is_in_the_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert lease_file(None).parent == tmp_path
    assert lease_file(tmp_path / "mine") == tmp_path / "mine"


def _below_a_file(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file" / "lease"


def _a_link(folder: Path) -> Path:
    (folder / "link").symlink_to(folder / "elsewhere")
    return folder / "link"


def _a_loop(folder: Path) -> Path:
    (folder / "loop").symlink_to("loop")
    return folder / "loop" / "lease"


@pytest.mark.parametrize("place", [_below_a_file, _a_link, _a_loop])
def test_a_path_that_cannot_be_is_one_sentence(place: Callable[[Path], Path], tmp_path: Path) -> None:
    path = place(tmp_path)
    with (
        pytest.raises(SettingError, match=r"yarnstick.lease = .*name a file") as told,
        measuring_lease(path, waiting=pytest.fail),
    ):
        pass
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)
    assert not (tmp_path / "elsewhere").exists()
