"""What docs/cluster.md tells users to copy works as it stands there: cron's and systemd's lines, settings, set-up."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from models.spark_conf import LEAST_OVERHEAD_MIB
from models.spark_containers import executor_mib, master_mib
from models.spec import Resources
from pipeline.config import read_settings
from tests.pipeline.place import PROFILE, TOP, Place

MANUAL = (TOP / "docs" / "cluster.md").read_text(encoding="utf-8")
CLUSTER_SETTINGS = TOP / "luigi.cluster.cfg"
SRV = "/srv/yarnstick"  # where the manual has everything


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """As the manual leaves it after the installation, with a store on this machine."""
    home = tmp_path / "srv"
    ours, _, profile = PROFILE.partition("[profile.tiny]")
    settings = CLUSTER_SETTINGS.read_text().replace("[yarnstick]\n", ours)
    for there, here in (
        ("hdfs:///user/NAME/yarnstick", str(home / "store")),
        ("runner = hadoop", "runner = inline"),
        ("master = yarn", "master = local-cluster"),
    ):
        assert there in settings
        settings = settings.replace(there, here)
    Place(home, f"{settings}\n[profile.quick]\n{profile.replace('steady', 'numpy')}")
    installed = home / ".venv" / "bin" / "luigi"
    installed.parent.mkdir(parents=True)
    installed.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(TOP))} exec {sys.executable} -P -m luigi "$@"\n')
    installed.chmod(0o755)
    return home


def blocks(language: str) -> list[str]:
    """What stands between ```language and ```, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", MANUAL, re.DOTALL | re.MULTILINE)


def started(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As a scheduler does: in /, with nothing in the environment but what is written down."""
    given = [f"{name}={value}" for name, value in variables.items()]
    return subprocess.run(["env", "-i", *given, *command], cwd="/", capture_output=True, text=True)


def assert_reported(home: Path) -> None:
    [run] = [path for path in (home / "store" / "runs").iterdir() if not path.name.startswith(".")]
    today = datetime.now(UTC).date()
    assert abs((datetime.fromisoformat(run.name).date() - today).days) <= 1
    assert (run / "report" / "report.html").is_file()
    assert (home / "cache").is_dir()


def test_the_line_for_cron(home: Path) -> None:
    [table] = blocks("crontab")
    lines = table.replace(SRV, str(home)).splitlines()
    variables = dict(line.split("=", 1) for line in lines if re.match(r"[A-Z_]+=", line))
    [line] = [line for line in lines if re.match(r"[\d*]", line)]
    command = line.split(maxsplit=5)[5]
    assert not re.search(r"(?<!\\)%", command), "cron ends a line there"
    # What cron adds by itself.
    surroundings = {"HOME": str(home), "LOGNAME": "me", "PATH": "/usr/bin:/bin"}
    done = started([variables["SHELL"], "-c", command.replace(r"\%", "%")], surroundings | variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    log = (home / "luigi.log").read_text()
    assert "Traceback" not in log
    assert "This progress looks :)" in log
    assert_reported(home)


def test_the_units_for_systemd(home: Path, tmp_path: Path) -> None:
    service, timer = (block for block in blocks("ini") if "[Service]" in block or "[Timer]" in block)
    assert "[Install]" in timer
    lines = [line.partition("=") for line in service.replace(SRV, str(home)).splitlines() if "=" in line]
    variables = dict(value.split("=", 1) for key, _, value in lines if key == "Environment")
    [command] = [value.replace("%%", "%").replace("$$", "$") for key, _, value in lines if key == "ExecStart"]
    surroundings = {"HOME": "/", "LANG": "C.UTF-8", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"}
    done = started(shlex.split(command), surroundings | variables)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert_reported(home)
    if analyze := shutil.which("systemd-analyze"):
        for name, unit in (("yarnstick.service", service.replace("User=NAME\n", "")), ("yarnstick.timer", timer)):
            (tmp_path / name).write_text(unit)
        checked = subprocess.run(
            [analyze, "verify", "--man=no", str(tmp_path / "yarnstick.timer")], capture_output=True, text=True
        )
        assert "Unknown" not in checked.stderr


def test_codes_of_the_manual_are_those_of_the_program() -> None:
    from pipeline.luigi_manners import EXIT_CODES

    [table] = re.findall(r"^#### Exit codes.*?(?=^####)", MANUAL, re.DOTALL | re.MULTILINE)
    told = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(", ")}
    assert told == {0, 2, *EXIT_CODES.values()}


def test_settings_of_the_template_are_known_and_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(CLUSTER_SETTINGS, tmp_path / "luigi.cfg")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("LUIGI_CONFIG_PATH", str(tmp_path / "luigi.cfg"))
    settings = read_settings("quick")
    assert settings.store.url == "hdfs:///user/NAME/yarnstick"
    assert (settings.mapreduce.runner, settings.spark.master, settings.hadoop.queue) == ("hadoop", "yarn", "default")
    assert settings.main.cache == tmp_path / "cache"
    section = ""
    for line in CLUSTER_SETTINGS.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif line and not line.startswith("#"):
            assert f"`{section} {line.partition(' =')[0]}`" in MANUAL


def test_sizes_of_the_manual_are_those_that_yarn_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUIGI_CONFIG_PATH", raising=False)
    [sizes] = re.findall(r"^### Sizes.*?(?=^###)", MANUAL, re.DOTALL | re.MULTILINE)
    told = {int(number) for number in re.findall(r"(\d+) MiB", sizes)}
    resources = Resources(executors=2, cores=1, memory_mib=2048, deploy_mode="client")
    beside = read_settings("quick").spark.overhead_mib
    assert f", {beside} as shipped" in sizes
    assert told == {
        LEAST_OVERHEAD_MIB,
        executor_mib(resources, python_mib=0, given={}),
        executor_mib(resources, python_mib=beside, given={}),
        master_mib(resources, given={}),
        master_mib(replace(resources, deploy_mode="cluster"), given={}),
    }


def test_files_that_the_manual_links_to_are_there() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", MANUAL):
        assert (TOP / "docs" / target).exists(), target
