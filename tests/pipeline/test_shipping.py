"""What is sent along to nodes, as far as it needs no cluster: what the settings take, and what is found in an archive.

Containers run on it in tests/cluster/test_shipping.py.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mapreduce.on_hadoop import Cluster, Errand, _arguments
from models.protocol import Yarn
from models.spark_conf import on_yarn
from models.spec import Resources
from pipeline import shipping
from pipeline.config import read_settings
from pipeline.settings import Settings
from pipeline.shipping import published_file, shipped
from store.errors import SettingError
from store.local import LocalStore
from store.opening import Reach
from yarn.shipped import Shipped

JDK = {"jdk-17.0.9+9/release": b'JAVA_VERSION="17"', "jdk-17.0.9+9/bin/java": b"#!", "jdk-17.0.9+9/jre/bin/java": b"#!"}


def tarred(files: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return written.getvalue()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    monkeypatch.chdir(tmp_path)

    def made(**hadoop: object) -> Settings:
        return read_settings("quick", overrides=[f"hadoop.{key}={value}" for key, value in hadoop.items()])

    return made


@pytest.mark.parametrize(
    ("name", "content", "home"),
    [
        ("jdk.tar.gz", tarred(JDK), "{{PWD}}/java/jdk-17.0.9+9"),
        ("jdk.tgz", tarred({f"./{name}": content for name, content in JDK.items()}), "{{PWD}}/java/jdk-17.0.9+9"),
        ("jdk.zip", zipped(JDK), "{{PWD}}/java/jdk-17.0.9+9"),
        ("jdk.tar.gz", tarred({"bin/java": b"#!"}), "{{PWD}}/java"),
    ],
    ids=["a tar", "a tar of ./", "a zip", "no directory around it"],
)
def test_java_is_found_in_its_archive(
    settings: Callable[..., Settings], tmp_path: Path, name: str, content: bytes, home: str
) -> None:
    (tmp_path / name).write_bytes(content)
    found = shipped(settings(java_archive=name), "spark")
    assert found.environment == {"JAVA_HOME": home}
    [archive] = found.archives
    assert archive.startswith(f"{LocalStore(tmp_path / 'build' / 'store').url}/shipped/")
    assert archive.endswith(f"{name[3:]}#java")


def test_only_those_that_are_named_get_java(settings: Callable[..., Settings], tmp_path: Path) -> None:
    (tmp_path / "jdk.zip").write_bytes(zipped(JDK))
    (tmp_path / "e.zip").write_bytes(zipped({"bin/python": b"#!"}))
    given = settings(java_archive="jdk.zip", java_archive_for="spark", python_archive="e.zip")
    assert [each.rpartition("#")[2] for each in shipped(given, "mapreduce").archives] == ["environment"]
    assert shipped(given, "mapreduce").environment == {}
    assert [each.rpartition("#")[2] for each in shipped(given, "spark").archives] == ["environment", "java"]
    assert shipped(settings(), "spark") == Shipped()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (tarred({"jdk/bin/javac": b"#!", "jdk/binjava": b""}), "holds no bin/java; give the archive of a whole JDK"),
        (zipped({"jdk/bin/javac": b"#!"}), "holds no bin/java"),
        (tarred(JDK)[:60], "is not an archive that can be unpacked"),
        (b"PK but not more", "is not an archive that can be unpacked"),
        (gzip.compress(b"hello"), "is not an archive that can be unpacked"),
        (b"", "is not an archive that can be unpacked"),
        (None, "cannot be read: No such file or directory"),
    ],
    # An archive holds the second in which it was written, and would make a name that each worker of pytest has its own.
    ids=["no java in a tar", "no java in a zip", "half a tar", "half a zip", "no tar", "empty", "no file"],
)
def test_what_is_no_jdk_is_said(
    settings: Callable[..., Settings], tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "jdk.tar.gz").write_bytes(content)
    with pytest.raises(SettingError) as raised:
        shipped(settings(java_archive="jdk.tar.gz"), "spark")
    assert str(raised.value).startswith(f"yarnstick.hadoop.java_archive = {tmp_path / 'jdk.tar.gz'}")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@given(content=st.binary(max_size=300))
@hypothesis_settings(max_examples=30)
def test_any_bytes_are_a_jdk_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.mktemp("any") / "jdk.tar.gz"
    file.write_bytes(content)
    with pytest.raises(SettingError):
        shipping._java_inside(str(file), read_settings("quick"))


def test_spark_tells_archives_apart_by_their_names(
    settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = settings(java_archive="hdfs://nn/java/a.zip", python_archive="hdfs://nn/python/a.zip")
    monkeypatch.setattr(shipping, "_java_inside", lambda *_: "jdk")  # there is no HDFS to look into
    with pytest.raises(SettingError, match="have the same file name"):
        shipped(twice, "spark")


def test_a_file_is_sent_once_for_each_content(tmp_path: Path) -> None:
    store, file = LocalStore(tmp_path / "store"), tmp_path / "a.tar.gz"
    file.write_bytes(b"one")
    first = published_file(store, file)
    assert published_file(store, file.rename(tmp_path / "b.tar.gz")) == first
    (tmp_path / "b.tar.gz").write_bytes(b"other")
    assert published_file(store, tmp_path / "b.tar.gz") != first
    assert [entry.name for entry in store.list("shipped")] == sorted(
        url.split("/")[-2] for url in (first, published_file(store, tmp_path / "b.tar.gz"))
    )


def test_a_relative_path_counts_from_the_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "luigi.cfg").write_text(
        "[yarnstick.hadoop]\njava_archive = jdk.tar.gz\npython_archive = HDFS://nn//a/e.zip\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LUIGI_CONFIG_PATH", str(elsewhere / "luigi.cfg"))
    found = read_settings("quick").hadoop
    assert (found.java_archive, found.python_archive) == (str(elsewhere / "jdk.tar.gz"), "hdfs://nn/a/e.zip")
    assert read_settings("quick", overrides=["hadoop.java_archive="]).hadoop.java_archive == ""


@pytest.mark.parametrize("given", ["jdk.tar.xz", "/opt/jdk", "hdfs://nn/jdk.rpm", "hdfs://n n/jdk.zip"])
def test_what_yarn_would_not_unpack_is_refused(settings: Callable[..., Settings], given: str) -> None:
    with pytest.raises(
        SettingError, match=r"write a path or an address on HDFS that ends in \.tar\.gz or \.tgz or \.zip"
    ):
        settings(java_archive=given)


SENT = Shipped(python_archive="hdfs://nn/e.zip", java_archive="hdfs://nn/j.zip", java_inside="jdk")
REACH = Reach(url="hdfs://nn/ours")


def test_every_container_of_a_job_gets_it() -> None:
    cluster = Cluster(
        command=Path("/bin/hadoop"),
        streaming_jar=Path("/s.jar"),
        resource_managers=(),
        queue="q",
        python="environment/bin/python",
        shipped=SENT,
        accepted_seconds=1.0,
    )
    errand = Errand(
        job="a:B", arguments=(), inputs=("in",), output="out", work="w", reach=REACH, cluster=cluster, parent=1
    )
    arguments = _arguments(errand, "tag")
    assert [each for each in arguments if each.startswith("--archives")] == [
        "--archives=hdfs://nn/e.zip#environment",
        "--archives=hdfs://nn/j.zip#java",
    ]
    for kind in ("yarn.app.mapreduce.am", "mapreduce.map", "mapreduce.reduce"):
        assert f"-D{kind}.env.JAVA_HOME={{{{PWD}}}}/java/jdk" in arguments


def test_every_container_of_an_application_gets_it() -> None:
    def conf(sent: Shipped) -> dict[str, str]:
        yarn = Yarn(
            reach=REACH,
            folder="f",
            jars="j",
            queue="q",
            resource_managers=(),
            accepted_seconds=1.0,
            python="environment/bin/python",
            shipped=sent,
        )
        return on_yarn(Resources(executors=1, cores=1, memory_mib=700), yarn, tag="tag", session="s")

    told = conf(SENT)
    assert told["spark.yarn.dist.archives"] == "hdfs://nn/e.zip#environment,hdfs://nn/j.zip#java"
    for kind in ("spark.yarn.appMasterEnv", "spark.executorEnv"):
        assert told[f"{kind}.JAVA_HOME"] == "{{PWD}}/java/jdk"
    assert not [key for key in conf(Shipped()) if "archives" in key or "JAVA_HOME" in key]
