"""What a task of the probe does, by the shell and the Python that it would have on a node."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from mapreduce.mr_nodes import SCRIPT, MRNodes
from mapreduce.node_facts import PACKAGES

FACTS = Path(__file__).parent.parent.parent / "mapreduce" / "node_facts.py"


@pytest.fixture
def container(tmp_path: Path) -> Path:
    """A directory with what Hadoop puts there."""
    shutil.copy(FACTS, tmp_path)
    return tmp_path


def told(container: Path, python: str, *also: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", SCRIPT, python, *also],
        input="0\ttell\n",
        cwd=container,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_node_tells_its_python_and_packages(container: Path) -> None:
    facts = json.loads(told(container, sys.executable, NM_HOST="node-7").stdout)
    assert facts == {
        "host": "node-7",
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "packages": {name: version(name) for name in PACKAGES},
        "distutils": True,
    }


def test_a_node_tells_of_what_else_is_asked_for(container: Path) -> None:
    facts = json.loads(told(container, sys.executable, "psutil", "no_such_package").stdout)
    assert facts["packages"] == {
        **{name: version(name) for name in PACKAGES},
        "psutil": version("psutil"),
        "no_such_package": None,
    }


def test_all_of_the_input_is_read(container: Path) -> None:
    """Hadoop fails a task that leaves some of it."""
    command = ["/bin/sh", "-c", SCRIPT, sys.executable]
    with subprocess.Popen(command, cwd=container, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdin.write(b"0\ttell\n" * 20_000) == 140_000
        process.stdin.close()
        assert process.wait() == 0


def test_a_package_that_does_not_load_is_none(container: Path) -> None:
    (container / "numpy.py").write_text("raise RuntimeError('this processor is too old')")
    done = told(container, sys.executable, NM_HOST="node-7")
    assert json.loads(done.stdout)["packages"]["numpy"] is None
    assert "numpy: this processor is too old" in done.stderr


def test_a_node_without_that_python_says_so(container: Path) -> None:
    assert told(container, "environment/bin/python", NM_HOST="node-7").stdout == (
        "node-7: environment/bin/python does not run\n"
    )


def test_the_job_is_one_command_that_hadoop_can_take_apart() -> None:
    [step] = MRNodes(["--no-conf", "-r", "hadoop", "--python-bin", "environment/bin/python"]).steps()
    command = step.description(0)["mapper"]["command"]
    assert command == f"/bin/sh -c '{SCRIPT}' environment/bin/python"
    [step] = MRNodes(["--no-conf", "-r", "hadoop", "--python-bin", "python", "--also=torch psutil"]).steps()
    assert step.description(0)["mapper"]["command"] == f"/bin/sh -c '{SCRIPT}' python torch psutil"
    assert "'" not in SCRIPT, "streaming knows no escapes within quotes"
