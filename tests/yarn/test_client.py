"""Which command and which jar of a Hadoop client are taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.errors import SettingError
from yarn.client import hadoop_command, streaming_jar


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def jar(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"PK")
    return path


def test_the_setting_goes_before_the_home_and_that_before_the_path(tmp_path: Path) -> None:
    given = program(tmp_path / "given")
    home = program(tmp_path / "home" / "bin" / "hadoop")
    path = program(tmp_path / "path" / "hadoop")
    environment = {"HADOOP_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}
    assert hadoop_command(given, environment=environment) == given
    assert hadoop_command(None, environment=environment) == home
    home.unlink()
    assert hadoop_command(None, environment=environment) == path


def test_a_command_that_is_not_there_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"yarnstick\.hadoop\.command=\S*no is no program; give the path"):
        hadoop_command(tmp_path / "no", environment={})
    with pytest.raises(SettingError, match=r"not on PATH, and HADOOP_HOME is not set; install a Hadoop client, or set"):
        hadoop_command(None, environment={"PATH": str(tmp_path)})
    environment = {"HADOOP_HOME": str(tmp_path), "PATH": ""}
    with pytest.raises(SettingError, match=rf"neither in HADOOP_HOME={tmp_path} nor on PATH; install"):
        hadoop_command(None, environment=environment)


def test_the_jar_is_the_settings_the_environments_or_the_homes(tmp_path: Path) -> None:
    command = program(tmp_path / "client" / "bin" / "hadoop")
    home = tmp_path / "home"
    there = jar(home / "share/hadoop/tools/lib/hadoop-streaming-3.1.1.jar")
    jar(home / "share/hadoop/tools/sources/hadoop-streaming-3.1.1-sources.jar")
    told, given = jar(tmp_path / "told.jar"), jar(tmp_path / "given.jar")
    environment = {"HADOOP_HOME": str(home), "HADOOP_STREAMING_JAR": str(told)}
    assert streaming_jar(given, command, environment=environment) == given
    assert streaming_jar(None, command, environment=environment) == told
    assert streaming_jar(None, command, environment={"HADOOP_HOME": str(home)}) == there
    with pytest.raises(SettingError, match=r"HADOOP_STREAMING_JAR=\S*none\.jar is no file"):
        streaming_jar(None, command, environment={"HADOOP_STREAMING_JAR": str(tmp_path / "none.jar")})


def test_without_a_home_the_commands_own_is_searched(tmp_path: Path) -> None:
    command = program(tmp_path / "vendor" / "hadoop" / "bin" / "hadoop")
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / "hadoop"
    link.symlink_to(command)
    with pytest.raises(SettingError, match=rf"lies below {tmp_path}/vendor/hadoop; set yarnstick\.hadoop\.streaming"):
        streaming_jar(None, link, environment={})
    there = jar(tmp_path / "vendor" / "hadoop-mapreduce" / "hadoop-streaming.jar")
    assert streaming_jar(None, link, environment={}).resolve() == there
    nearer = jar(tmp_path / "vendor" / "hadoop" / "deep" / "in" / "hadoop-2.6-streaming-x.jar")
    there.unlink()
    assert streaming_jar(None, link, environment={}) == nearer
