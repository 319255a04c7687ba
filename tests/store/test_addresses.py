"""Which NameNodes an address leads to: by Hadoop's own configuration, or by luigi.cfg."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.addresses import Place, checked_url, place_of
from store.errors import SettingError, StoreError

HA = {
    "dfs.nameservices": "other, demo",
    "dfs.ha.namenodes.demo": "nn1,nn2",
    "dfs.namenode.rpc-address.demo.nn1": "one.example:8020",
    "dfs.namenode.rpc-address.demo.nn2": "two.example:8020",
    "dfs.namenode.http-address.demo.nn1": "one.example:9870",
    "dfs.namenode.http-address.demo.nn2": "0.0.0.0:50070",
    "dfs.namenode.https-address.demo.nn1": "one.example:9871",
}
SINGLE = {"fs.defaultFS": "hdfs://nn.example:9000", "dfs.namenode.http-address": "0.0.0.0:9999"}


def configuration(folder: Path, values: dict[str, str]) -> dict[str, str]:
    """The environment with a HADOOP_CONF_DIR of these properties."""
    properties = "".join(
        f"<property>\n<name>{name}</name>\n<value> {escape(value)} </value></property>"
        for name, value in values.items()
    )
    (folder / "hdfs-site.xml").write_text(f"<?xml version='1.0'?><configuration>{properties}</configuration>")
    return {"HADOOP_CONF_DIR": str(folder)}


FOUND = {
    "hdfs://demo/a": (HA, ("http://one.example:9870", "http://two.example:50070")),
    "webhdfs://demo/a": (HA, ("http://one.example:9870", "http://two.example:50070")),
    "swebhdfs://demo/a": (HA, ("https://one.example:9871", "https://two.example:9871")),
    "hdfs://two.example:8020/a": (HA, ("http://two.example:50070",)),
    "hdfs://one.example/a": (HA, ("http://one.example:9870",)),
    "hdfs://nn.example:9000/a": (SINGLE, ("http://nn.example:9999",)),
    "hdfs:///a": (SINGLE, ("http://nn.example:9999",)),
    "hdfs://NN.example:9000/a": (SINGLE, ("http://NN.example:9999",)),
    "hdfs://nn/a": ({"fs.defaultFS": "hdfs://nn:8020"}, ("http://nn:9870",)),
    "hdfs://nn:8020/a": (
        {"dfs.namenode.rpc-address": "nn:8020", "dfs.http.policy": "HTTPS_ONLY"},
        ("https://nn:9871",),
    ),
    "hdfs://one/a": (
        {"dfs.nameservices": "one", "host": "nn", "dfs.namenode.http-address.one": "${host}:1${port}", "port": "2"},
        ("http://nn:12",),
    ),
}


@pytest.mark.parametrize("url", FOUND)
def test_hadoops_configuration_tells_the_namenodes(tmp_path: Path, url: str) -> None:
    values, expected = FOUND[url]
    assert place_of(url, namenodes=(), environment=configuration(tmp_path, values)).namenodes == expected


def test_an_address_with_a_port_needs_no_configuration() -> None:
    place = place_of("webhdfs://nn.example:9870/a/b", namenodes=(), environment={})
    assert place == Place(url="webhdfs://nn.example:9870/a/b", root="/a/b", namenodes=("http://nn.example:9870",))
    assert place_of("swebhdfs://nn:9871", namenodes=(), environment={}).namenodes == ("https://nn:9871",)


def test_the_settings_go_before_the_configuration(tmp_path: Path) -> None:
    given = ("nn:1", "https://other.example:2/", "http://nn:1")
    environment = configuration(tmp_path, HA)
    assert place_of("hdfs://demo/a", namenodes=given, environment=environment).namenodes == (
        "http://nn:1",
        "https://other.example:2",
    )
    assert place_of("swebhdfs://demo/a", namenodes=("nn:1",), environment={}).namenodes == ("https://nn:1",)


@pytest.mark.parametrize("address", ["nn", "nn:x", "ftp://nn:1", "nn:1/path", "-x:1", "a b:1"])
def test_a_namenode_without_host_and_port_is_an_error(address: str) -> None:
    with pytest.raises(
        SettingError, match=r"yarnstick\.store\.namenodes: .* is no address of a NameNode; write host:port"
    ):
        place_of("hdfs://demo/a", namenodes=(address,), environment={})


def test_what_nobody_knows_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"HADOOP_CONF_DIR is not set, .*yarnstick\.store\.namenodes .* host:9870"):
        place_of("hdfs://demo/a", namenodes=(), environment={})
    with pytest.raises(SettingError, match=r"holds neither core-site\.xml nor hdfs-site\.xml"):
        place_of("hdfs://demo/a", namenodes=(), environment={"HADOOP_CONF_DIR": str(tmp_path)})
    environment = configuration(tmp_path, HA)
    with pytest.raises(SettingError, match=r"know no NameNode elsewhere:8020; set yarnstick\.store\.namenodes"):
        place_of("hdfs://elsewhere:8020/a", namenodes=(), environment=environment)
    with pytest.raises(SettingError, match=r"fs\.defaultFS is missing"):
        place_of("hdfs:///a", namenodes=(), environment=environment)
    (tmp_path / "hdfs-site.xml").write_text("<configuration>\n<property>")
    with pytest.raises(SettingError, match=r"hdfs-site\.xml:2: this is not XML"):
        place_of("hdfs://demo/a", namenodes=(), environment=environment)


@given(st.dictionaries(st.sampled_from([*HA, *SINGLE, "a"]), st.text("${}a.:0/,", max_size=12), max_size=6))
def test_no_configuration_ends_in_anything_but_our_error(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, str]
) -> None:
    environment = configuration(tmp_path_factory.getbasetemp(), values)
    for url in ("hdfs://demo/a", "hdfs:///a", "hdfs://one.example:8020/a"):
        with suppress(SettingError, StoreError):
            assert place_of(url, namenodes=(), environment=environment).namenodes


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("HDFS://demo//a///b/", "hdfs://demo/a/b"),
        ("hdfs://demo", "hdfs://demo"),
        ("hdfs:///", "hdfs://"),
        ("webhdfs://nn_1.example:9870/a b", "webhdfs://nn_1.example:9870/a b"),
        ("webhdfs://[::1]:9870/a", "webhdfs://[::1]:9870/a"),
    ],
)
def test_an_address_has_one_spelling(text: str, url: str) -> None:
    assert checked_url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "hdfs:/a",
        "hdfs:a",
        "s3://a/b",
        "webhdfs:///a",
        "hdfs://me:secret@nn/a",
        "hdfs://nn:99999/a",
        "hdfs://-nn/a",
        "hdfs://nn/a/../b",
        "hdfs://nn/a:b",
        "hdfs://nn/a?op=DELETE",
        "hdfs://nn/a#b",
        "hdfs://nn/{a,b}",
        "hdfs://nn/a\nb",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        checked_url(text)


@given(st.text(st.characters()), st.sampled_from(["", "hdfs://", "webhdfs://nn:1/"]))
def test_no_text_ends_in_anything_but_an_address_or_its_refusal(text: str, before: str) -> None:
    try:
        url = checked_url(before + text)
    except ValueError:
        return
    assert checked_url(url) == url
    assert ".." not in url.split("/")
