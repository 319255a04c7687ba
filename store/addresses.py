"""From the address of a store to the NameNodes that answer for it over HTTP, as Hadoop's own configuration says."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from store.configuration import HOST, WILDCARDS, given_address, listed_names, read_configuration, split_address
from store.errors import SettingError

SCHEMES = ("hdfs", "webhdfs", "swebhdfs")
FILES = ("core-site.xml", "hdfs-site.xml")  # the last one wins
DEFAULT_PORTS = {"http": 9870, "https": 9871}  # Hadoop 3's, where the configuration leaves them out
RPC_PORT = "8020"
AUTHORITY = re.compile(rf"{HOST}(?::(?P<port>[0-9]{{1,5}}))?")
# HDFS refuses the colon; the others mean something in Hadoop's patterns of paths or in an address.
SEGMENT = re.compile(r"[^\x00-\x1f\x7f\\:?#*\[\]{}/]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory of one HDFS, and the NameNodes to ask about it."""

    url: str  # as a user would write it
    root: str  # the path on HDFS, without a slash at the end
    namenodes: tuple[str, ...]  # http://host:port


def is_on_hdfs(text: str) -> bool:
    """Whether it is meant as an address of HDFS, right or wrong; all else is a path of this machine."""
    return text.lower().startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def checked_url(text: str) -> str:
    """An address of HDFS in its one spelling; ValueError where it is none."""
    scheme, separator, rest = text.partition("://")
    authority, _, path = rest.partition("/")
    segments = [segment for segment in path.split("/") if segment]
    found = AUTHORITY.fullmatch(authority)
    if scheme.lower() not in SCHEMES or not separator:
        raise ValueError("not an address of HDFS")
    if not found and (authority or scheme.lower() != "hdfs"):
        raise ValueError("no host")
    if found and int(found["port"] or 0) > 65_535:
        raise ValueError("no such port")
    if any(segment in (".", "..") or not SEGMENT.fullmatch(segment) for segment in segments):
        raise ValueError("not a path that HDFS takes")
    return "/".join([f"{scheme.lower()}://{authority}", *segments])


def place_of(url: str, *, namenodes: Sequence[str], environment: Mapping[str, str] = os.environ) -> Place:
    """`namenodes` are addresses of luigi.cfg; without them Hadoop's configuration is asked."""
    url = checked_url(url)
    parts = urlsplit(url)
    scheme = "https" if parts.scheme == "swebhdfs" else "http"
    if namenodes:
        addresses = [_given(address, scheme) for address in namenodes]
    elif parts.scheme != "hdfs" and parts.port is not None:
        addresses = [f"{scheme}://{parts.netloc}"]
    else:
        addresses = _looked_up(url, environment)
    return Place(url=url, root=parts.path, namenodes=tuple(dict.fromkeys(addresses)))


def _given(address: str, scheme: str) -> str:
    found = given_address(address, scheme=scheme)
    if not found:
        raise SettingError(
            f"yarnstick.store.namenodes: {address!r} is no address of a NameNode; write host:port, or https://host:port"
        )
    return found


def _looked_up(url: str, environment: Mapping[str, str]) -> list[str]:
    folder = environment.get("HADOOP_CONF_DIR")
    if not folder:
        raise SettingError(
            f"{url}: HADOOP_CONF_DIR is not set, so nothing says where its NameNode answers over HTTP; set it to the "
            f"directory of hdfs-site.xml, or yarnstick.store.namenodes to the address, as in host:9870"
        )
    configuration = read_configuration({"HADOOP_CONF_DIR": Path(folder)}, FILES)
    parts = urlsplit(url)
    authority = parts.netloc or urlsplit(configuration.get("fs.defaultFS", "")).netloc
    policy = configuration.get("dfs.http.policy", "HTTP_ONLY")
    secure = parts.scheme == "swebhdfs" or (parts.scheme == "hdfs" and policy != "HTTP_ONLY")
    found = _http_addresses(configuration, authority, "https" if secure else "http") if authority else []
    if not found:
        raise SettingError(
            f"{url}: hdfs-site.xml and core-site.xml of HADOOP_CONF_DIR={folder} know no NameNode "
            f"{authority or '(fs.defaultFS is missing, too)'}; set yarnstick.store.namenodes to its HTTP address, "
            f"as in host:9870"
        )
    return found


def _http_addresses(configuration: Mapping[str, str], authority: str, scheme: str) -> list[str]:
    """Of a name service all its NameNodes, of a single NameNode its one; empty if it is not known."""
    if authority in listed_names(configuration, "dfs.nameservices"):
        namenodes = listed_names(configuration, f"dfs.ha.namenodes.{authority}")
        suffixes = [f".{authority}.{namenode}" for namenode in namenodes] or [f".{authority}"]
        found = [_http_address(configuration, suffix, scheme) for suffix in suffixes]
        if not namenodes and found == [None]:
            found = [_http_address(configuration, "", scheme)]
        return [address for address in found if address is not None]
    key = "dfs.namenode.rpc-address"
    for name, value in configuration.items():
        if name.startswith(key) and _same(value, authority):
            address = _http_address(configuration, name.removeprefix(key), scheme)
            return [address] if address else []
    if _same(urlsplit(configuration.get("fs.defaultFS", "")).netloc, authority):
        address = _http_address(configuration, "", scheme, rpc=authority)
        return [address] if address else []
    return []


def _http_address(configuration: Mapping[str, str], suffix: str, scheme: str, *, rpc: str | None = None) -> str | None:
    """One NameNode's; a host left open, or a missing address, is the RPC address's host."""
    rpc = rpc or configuration.get(f"dfs.namenode.rpc-address{suffix}")
    given = configuration.get(f"dfs.namenode.{scheme}-address{suffix}")
    if given is None and rpc is None:
        return None
    host, port = split_address(given or "")
    if not host or host in WILDCARDS:
        host = split_address(rpc or "")[0]
    return f"{scheme}://{host}:{port or DEFAULT_PORTS[scheme]}" if host else None


def _same(one: str, other: str) -> bool:
    """Host and port of RPC addresses, which may leave the usual port out."""
    first, second = split_address(one.lower()), split_address(other.lower())
    return bool(one) and (first[0], first[1] or RPC_PORT) == (second[0], second[1] or RPC_PORT)
