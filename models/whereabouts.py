"""Whether a trial computes on the machine whose matrix product was measured: the one that the run was started on."""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import IPv4Address

import psutil

from models.protocol import Surroundings
from models.spec import Resources
from store.errors import YarnstickError
from yarn.resource_manager import RUNNING, ResourceManager


def computes_here(resources: Resources, surroundings: Surroundings, manager: ResourceManager | None) -> bool:
    """False too where nobody says on which machines executors are; `manager` is that of their YARN."""
    yarn = surroundings.yarn
    if yarn is not None and yarn.is_driver:
        return False  # this process is on a node, and what was measured is the machine that submitted it
    if resources.executors is None or (yarn is None and surroundings.spark_url is None):
        return True
    if manager is None:
        return False
    with suppress(YarnstickError):
        hosts = {node.host for node in manager.nodes() if node.state == RUNNING}
        return bool(hosts) and all(map(_is_own, hosts))
    return False


def _is_own(host: str) -> bool:
    with suppress(OSError):
        address = socket.gethostbyname(host)
        every = {each.address for interface in psutil.net_if_addrs().values() for each in interface}
        return IPv4Address(address).is_loopback or address in every
    return False
