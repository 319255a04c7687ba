"""Nodes without our Java and Python: containers whose PATH and JAVA_HOME lead to neither run on what is sent along."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.lifecycle import Cluster
from mapreduce.on_hadoop import Errand, run_on_hadoop
from pipeline.config import read_settings
from pipeline.datasets.jobs import hadoop_cluster
from pipeline.environment import pack_environment
from pipeline.opening import open_store, reach
from pipeline.settings import Settings
from pipeline.shipping import published_file
from store.errors import SettingError, TrialError
from store.publish import temporary_name
from tests.pipeline.place import TOP

# What a NodeManager's launch script and Hadoop's streaming call themselves, and this file's job: nodes need no less.
OF_THE_SCRIPT = (
    "bash",
    "cat",
    "chmod",
    "cp",
    "env",
    "find",
    "ln",
    "ls",
    "mkdir",
    "mv",
    "nice",
    "readlink",
    "rm",
    "setsid",
    "sh",
)
MODULES = (
    "java.base,java.compiler,java.desktop,java.instrument,java.logging,java.management,java.naming,java.net.http,"
    "java.rmi,java.scripting,java.security.jgss,java.security.sasl,java.sql,java.xml,jdk.crypto.ec,"
    "jdk.incubator.vector,jdk.jfr,jdk.management,jdk.naming.dns,jdk.security.auth,jdk.security.jgss,jdk.unsupported,"
    "jdk.zipfs"
)
NOWHERE = "/nonexistent"


@pytest.fixture(scope="module")
def java_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a JDK is downloaded: with a directory of its own in it."""
    jlink = shutil.which("jlink") or str(Path(os.environ.get("JAVA_HOME", NOWHERE), "bin", "jlink"))
    if not Path(jlink).exists():
        if "CI" in os.environ:
            pytest.fail("CI has to install a JDK: without jlink nothing is shipped to nodes here")
        pytest.skip("this machine has a JRE only: no jlink makes a small JDK of it")
    folder = tmp_path_factory.mktemp("java")
    command = [jlink, "--add-modules", MODULES, "--output", str(folder / "jdk-small"), "--no-man-pages"]
    subprocess.run([*command, "--strip-java-debug-attributes"], check=True, capture_output=True)
    with tarfile.open(folder / "jdk.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(folder / "jdk-small", "jdk-small")
    return folder / "jdk.tar.gz"


@pytest.fixture(scope="module")
def python_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack_environment(tmp_path_factory.mktemp("python") / "environment.tar.gz").file


@pytest.fixture
def poor_path(tmp_path: Path) -> str:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in OF_THE_SCRIPT:
        (folder / name).symlink_to(str(shutil.which(name)))
    return str(folder)


@pytest.fixture
def settings(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    for name, value in cluster.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    store = f"{os.environ['YARNSTICK_STORE']}-shipping"

    def made(*overrides: str) -> Settings:
        always = ("mapreduce.runner=hadoop", "spark.master=yarn", f"cache={tmp_path / 'cache'}")
        return read_settings("quick", overrides=[*always, *overrides], store=store)

    return made


def told_by_a_job(settings: Settings, *arguments: str) -> dict[str, str]:
    """What the task of a job says of its container."""
    store, folder = open_store(settings), temporary_name()
    store.write(f"{folder}/lines", b"tell\n")
    errand = Errand(
        job="tests.cluster.mr_containers:MRContainers",
        arguments=("-Dmapreduce.job.maps=1", *arguments),
        inputs=(f"{folder}/lines",),
        output=f"{folder}/output",
        work=f"{folder}/work",
        reach=reach(settings),
        cluster=hadoop_cluster(settings),
        parent=os.getpid(),
    )
    try:
        run_on_hadoop(errand, listener=lambda news: None)
        names = [entry.name for entry in store.list(f"{folder}/output") if entry.name.startswith("part-")]
        lines = [line for name in names for line in store.read(f"{folder}/output/{name}").decode().splitlines()]
    finally:
        store.remove(folder)
    return dict(line.strip().split(" ", 1) for line in lines)


def of_all_containers(name: str, value: str, *, kinds: tuple[str, ...]) -> list[str]:
    return [f"-D{kind}.env.{name}={value}" for kind in kinds]


JOB = ("yarn.app.mapreduce.am", "mapreduce.map")


def test_a_job_runs_on_the_java_and_python_that_are_sent(
    settings: Callable[..., Settings], java_archive: Path, python_archive: Path, poor_path: str
) -> None:
    given = settings(f"hadoop.java_archive={java_archive}", f"hadoop.python_archive={python_archive}")
    told = told_by_a_job(given, *of_all_containers("PATH", poor_path, kinds=JOB))
    assert told["path"] == poor_path
    # YARN unpacks an archive in its cache and links it into the container.
    assert told["java"].endswith("/jdk-small/bin/java")
    assert "/filecache/" in told["java"]
    assert told["python"].startswith(f"{sys.version.split()[0]} {told['here']}/environment")


def test_without_an_archive_a_node_without_java_is_told(settings: Callable[..., Settings]) -> None:
    with pytest.raises(TrialError, match=rf"application_\d+_\d+ .*{NOWHERE}/bin/java.*java_archive"):
        told_by_a_job(settings(), *of_all_containers("JAVA_HOME", NOWHERE, kinds=JOB))


TELL = """
import json, os, sys
from pathlib import Path
from models.protocol import Surroundings
from models.spark_application import SparkApplication
from models.spec import Resources
from pipeline.config import read_settings
from pipeline.on_yarn import prepared
from pipeline.opening import open_store

overrides, store, conf = json.loads(sys.argv[1])
settings = read_settings("quick", overrides=overrides, store=store)
surroundings = Surroundings(
    work=Path("work").absolute(), spark_conf=conf, archives=Path("work/eventlogs").absolute(),
    yarn=prepared(settings, open_store(settings), folder="runs/R"),
)
Path("work").mkdir()
application = SparkApplication(Resources(executors=1, cores=1, memory_mib=700, partitions=1), surroundings)
context = application.session.sparkContext
java = "SELECT reflect('java.lang.System', 'getProperty', 'java.home') home FROM range(0, 1, 1, 1)"
ask = lambda _: (sys.prefix, sys.version.split()[0], os.environ["PATH"], os.getcwd())
told = {"java": application.session.sql(java).collect()[0].home}
told["python"] = context.parallelize([0], 1).map(ask).collect()[0]
application.stop()
print("told", json.dumps(told))
"""


def told_by_spark(tmp_path: Path, *overrides: str, conf: dict[str, str]) -> dict[str, list[str]]:
    """What an executor says of its container. In a process of its own, which Spark's JVM ends with."""
    always = ["spark.master=yarn", f"cache={tmp_path / 'cache'}"]
    argument = json.dumps([[*always, *overrides], f"{os.environ['YARNSTICK_STORE']}-shipping", conf])
    done = subprocess.run(
        [sys.executable, "-c", TELL, argument],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(TOP)},
        capture_output=True,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("told ")]
    assert lines, done.stderr[-3000:]
    told: dict[str, list[str]] = json.loads(lines[0].removeprefix("told "))
    return told


def test_executors_run_on_the_java_and_python_that_are_sent(
    settings: Callable[..., Settings], java_archive: Path, python_archive: Path, poor_path: str, tmp_path: Path
) -> None:
    settings()
    told = told_by_spark(
        tmp_path,
        f"hadoop.java_archive={java_archive}",
        f"hadoop.python_archive={python_archive}",
        conf={"spark.executorEnv.PATH": poor_path, "spark.yarn.appMasterEnv.PATH": poor_path},
    )
    assert told["java"].endswith("/jdk-small")  # Java tells where it really lies, in YARN's cache
    assert "/filecache/" in told["java"]
    prefix, version, path, here = told["python"]
    assert (version, path) == (sys.version.split()[0], poor_path)
    assert Path(prefix).name == "environment"
    assert "/filecache/" in prefix or prefix.startswith(here)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("spark.yarn.appMasterEnv", f"{NOWHERE}/bin/java.*yarnstick.hadoop.java_archive"),
        ("spark.executorEnv", "Max number of executor failures"),  # Spark keeps their words in its own log
    ],
)
def test_without_an_archive_spark_fails_with_a_sentence(
    settings: Callable[..., Settings], tmp_path: Path, kind: str, said: str
) -> None:
    settings()
    with pytest.raises(AssertionError, match=rf"TrialError: application_\d+_\d+ .*{said}"):
        told_by_spark(tmp_path, conf={f"{kind}.JAVA_HOME": NOWHERE})


def test_a_file_goes_to_the_store_once(settings: Callable[..., Settings], tmp_path: Path) -> None:
    store, file = open_store(settings()), tmp_path / "some.tar.gz"
    file.write_bytes(os.urandom(1000))
    first = published_file(store, file)
    renamed = file.rename(tmp_path / "other.tgz.tar.gz")
    path = first.removeprefix(f"{store.url}/")
    assert store.read(path) == renamed.read_bytes()
    assert published_file(store, renamed) == first
    renamed.write_bytes(b"other")
    assert published_file(store, renamed) != first


def test_an_archive_on_hdfs_is_looked_into(
    settings: Callable[..., Settings], java_archive: Path, python_archive: Path
) -> None:
    store = open_store(settings())
    java, python = published_file(store, java_archive), published_file(store, python_archive)
    found = hadoop_cluster(settings(f"hadoop.java_archive={java}")).shipped
    assert found.environment == {"JAVA_HOME": "{{PWD}}/java/jdk-small"}
    with pytest.raises(SettingError, match="holds no bin/java"):
        hadoop_cluster(settings(f"hadoop.java_archive={python}"))
    with pytest.raises(SettingError, match="there is no such file"):
        hadoop_cluster(settings(f"hadoop.java_archive={store.url}/nothing.zip"))
