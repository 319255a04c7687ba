"""The web addresses of the ResourceManagers, as luigi.cfg or Hadoop's own configuration says."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from store.configuration import WILDCARDS, given_address, listed_names, read_configuration, split_address
from store.errors import SettingError

VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")  # the last one wins
FILES = ("core-site.xml", "yarn-site.xml")
DEFAULT_PORTS = {"http": 8088, "https": 8090}
KEYS = {"http": "yarn.resourcemanager.webapp.address", "https": "yarn.resourcemanager.webapp.https.address"}
HOSTNAME = "yarn.resourcemanager.hostname"
# Of other services of the ResourceManager, whose host is the same.
RPC = ("yarn.resourcemanager.address", "yarn.resourcemanager.scheduler.address", "yarn.resourcemanager.admin.address")


def addresses_of(given: Sequence[str], *, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """`given` are addresses of luigi.cfg; without them Hadoop's configuration is asked."""
    return tuple(dict.fromkeys([_given(each) for each in given] or _looked_up(environment)))


def configuration_folders(environment: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """By the variable that names it; where both name the same one, it is there once."""
    found = {name: Path(environment[name]) for name in VARIABLES if environment.get(name)}
    return {
        name: folder for name, folder in found.items() if folder not in list(found.values())[: [*found].index(name)]
    }


def _given(address: str) -> str:
    found = given_address(address, scheme="http")
    if not found:
        raise SettingError(
            f"yarnstick.hadoop.resource_managers: {address!r} is no address of a ResourceManager; "
            f"write host:port, or https://host:port"
        )
    return found


def _looked_up(environment: Mapping[str, str]) -> list[str]:
    folders = configuration_folders(environment)
    if not folders:
        raise SettingError(
            "HADOOP_CONF_DIR is not set, so nothing says where YARN's ResourceManager is; set it to the directory of "
            "yarn-site.xml, or yarnstick.hadoop.resource_managers to its HTTP address, as in host:8088"
        )
    configuration = read_configuration(folders, FILES)
    scheme = "https" if configuration.get("yarn.http.policy", "").upper() == "HTTPS_ONLY" else "http"
    ids = listed_names(configuration, "yarn.resourcemanager.ha.rm-ids")
    suffixes = [f".{each}" for each in ids] if _is_true(configuration, "yarn.resourcemanager.ha.enabled") else []
    found = [_address(configuration, suffix, scheme) for suffix in suffixes or [""]]
    known = [address for address in found if address]
    if not known:
        told = " and ".join(f"{name}={folder}" for name, folder in folders.items())
        raise SettingError(
            f"yarn-site.xml and core-site.xml of {told} know no ResourceManager ({HOSTNAME} is missing); "
            f"set yarnstick.hadoop.resource_managers to its HTTP address, as in host:{DEFAULT_PORTS[scheme]}"
        )
    return known


def _address(configuration: Mapping[str, str], suffix: str, scheme: str) -> str | None:
    """One ResourceManager's; a host left open, or a missing address, is that of its other services."""
    host, port = split_address(configuration.get(f"{KEYS[scheme]}{suffix}", ""))
    others = [configuration.get(f"{HOSTNAME}{suffix}", "")]
    others += [split_address(configuration.get(f"{key}{suffix}", ""))[0] for key in RPC]
    hosts = [each for each in (host, *others) if each and each not in WILDCARDS and "${" not in each]
    return f"{scheme}://{hosts[0]}:{port or DEFAULT_PORTS[scheme]}" if hosts else None


def _is_true(configuration: Mapping[str, str], key: str) -> bool:
    return configuration.get(key, "").lower() == "true"
