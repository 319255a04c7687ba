"""What the machine is, and how much of it others use."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from models.probes import OtherLoad, cpu_name, memory_mib, product_flops, usable_cores

BURN = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: sum(range(1000))"


def test_the_machine() -> None:
    assert usable_cores() >= 1
    assert memory_mib() > 100
    assert cpu_name()


def test_work_of_our_own_processes_is_not_other_load() -> None:
    """The same burning child is ours by one root and others' by another."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as stranger:
        ours, others = OtherLoad(os.getpid()), OtherLoad(stranger.pid)
        subprocess.run([sys.executable, "-c", BURN], check=True)
        difference = others.cores() - ours.cores()
        stranger.kill()
    assert 0.3 < difference < 1.5


def test_a_child_that_ended_was_ours_all_the_same() -> None:
    load = OtherLoad(os.getpid())
    before = time.process_time()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert time.process_time() - before < 1, "the child burnt, not we"
    assert load.cores() < usable_cores()


def test_a_process_that_is_gone_has_no_load_of_its_own() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone:
        gone.wait()
    assert OtherLoad(gone.pid).cores() >= 0


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
def test_the_matrix_product_has_a_speed(name: str) -> None:
    import torch

    threads = torch.get_num_threads()
    assert product_flops(getattr(torch, name), threads=1, repeats=1) > 1e8
    assert torch.get_num_threads() == threads
