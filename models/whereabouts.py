"""Whether a trial computes on the machine that this process is on: only of that the matrix product was measured."""

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
    if resources.executors is None or (surroundings.yarn is None and surroundings.spark_url is None):
        return True
    if manager is None or surroundings.yarn is None or surroundings.yarn.is_driver:
        return False  # the driver is on a node, and what was measured is the machine that submitted it
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
