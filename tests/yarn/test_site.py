"""Where the ResourceManagers are: by Hadoop's own configuration, or by luigi.cfg."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import SettingError
from yarn.site import addresses_of, configuration_folders

HOST = "yarn.resourcemanager.hostname"
WEB = "yarn.resourcemanager.webapp.address"
HA = {
    "yarn.resourcemanager.ha.enabled": "true",
    "yarn.resourcemanager.ha.rm-ids": "rm1, rm2",
    f"{HOST}.rm1": "one.example",
    f"{HOST}.rm2": "two.example",
    f"{WEB}.rm2": "two.example:18088",
    "yarn.resourcemanager.webapp.https.address.rm1": "one.example:18090",
}
FOUND = {
    "a host": ({HOST: "rm.example"}, ("http://rm.example:8088",)),
    "an address": ({HOST: "rm.example", WEB: "web.example:80"}, ("http://web.example:80",)),
    "an open host": ({HOST: "rm.example", WEB: "0.0.0.0:80"}, ("http://rm.example:80",)),
    "a variable": ({HOST: "rm.example", WEB: "${yarn.resourcemanager.hostname}:80"}, ("http://rm.example:80",)),
    "only the address of calls": ({"yarn.resourcemanager.address": "rm.example:8032"}, ("http://rm.example:8088",)),
    "https": ({HOST: "rm.example", "yarn.http.policy": "HTTPS_ONLY"}, ("https://rm.example:8090",)),
    "two": (HA, ("http://one.example:8088", "http://two.example:18088")),
    "two by https": (
        {**HA, "yarn.http.policy": "HTTPS_ONLY"},
        ("https://one.example:18090", "https://two.example:8090"),
    ),
    "two that are switched off": (
        {**HA, "yarn.resourcemanager.ha.enabled": "false", HOST: "rm.example"},
        ("http://rm.example:8088",),
    ),
}


def write(folder: Path, values: dict[str, str], *, name: str = "yarn-site.xml") -> Path:
    folder.mkdir(exist_ok=True)
    properties = "".join(
        f"<property><name>{key}</name><value>{escape(value)}</value></property>" for key, value in values.items()
    )
    (folder / name).write_text(f"<?xml version='1.0'?><configuration>{properties}</configuration>")
    return folder


@pytest.mark.parametrize("case", FOUND)
def test_hadoops_configuration_tells_them(tmp_path: Path, case: str) -> None:
    values, expected = FOUND[case]
    assert addresses_of((), environment={"HADOOP_CONF_DIR": str(write(tmp_path, values))}) == expected


def test_luigi_cfg_goes_before_the_configuration(tmp_path: Path) -> None:
    environment = {"HADOOP_CONF_DIR": str(write(tmp_path, HA))}
    given_ones = ("rm:1", "https://other.example:2/", "http://rm:1")
    assert addresses_of(given_ones, environment=environment) == ("http://rm:1", "https://other.example:2")
    with pytest.raises(SettingError, match=r"resource_managers: 'rm' is no address of a ResourceManager; write host:"):
        addresses_of(("rm",), environment={})


def test_the_directory_of_yarn_goes_before_that_of_hadoop(tmp_path: Path) -> None:
    hadoop = write(tmp_path / "hadoop", {"domain": "example", HOST: "old"}, name="core-site.xml")
    yarn = write(tmp_path / "yarn", {HOST: "new.${domain}"})
    both = {"HADOOP_CONF_DIR": str(hadoop), "YARN_CONF_DIR": str(yarn)}
    assert addresses_of((), environment=both) == ("http://new.example:8088",)
    assert list(configuration_folders(both)) == ["HADOOP_CONF_DIR", "YARN_CONF_DIR"]
    assert list(configuration_folders({**both, "YARN_CONF_DIR": str(hadoop)})) == ["HADOOP_CONF_DIR"]


def test_what_nobody_knows_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"^HADOOP_CONF_DIR is not set, .*resource_managers .* host:8088$"):
        addresses_of((), environment={})
    environment = {"HADOOP_CONF_DIR": str(tmp_path)}
    with pytest.raises(SettingError, match=r"holds neither core-site\.xml nor yarn-site\.xml"):
        addresses_of((), environment=environment)
    for values in ({}, {HOST: "[::]"}, {HOST: "${nobody}"}):
        write(tmp_path, values)
        with pytest.raises(SettingError, match=rf"of HADOOP_CONF_DIR={tmp_path} know no ResourceManager"):
            addresses_of((), environment=environment)
    (tmp_path / "yarn-site.xml").write_text("<configuration>\n<property>")
    with pytest.raises(SettingError, match=r"yarn-site\.xml:2: this is not XML"):
        addresses_of((), environment=environment)


@given(st.dictionaries(st.sampled_from([*HA, HOST, WEB]), st.text("${}a.:0,", max_size=12), max_size=6))
def test_no_configuration_ends_in_anything_but_our_error(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, str]
) -> None:
    folder = write(tmp_path_factory.getbasetemp(), values)
    with suppress(SettingError):
        assert addresses_of((), environment={"HADOOP_CONF_DIR": str(folder)})
