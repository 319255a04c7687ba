"""What the machine is, and how much of it others use."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time

import psutil
import pytest

from models.probes import (
    OtherLoad,
    PeakKey,
    cpu_name,
    measure_peaks,
    memory_mib,
    multiplies_bfloat16,
    peak_key,
    peak_keys,
    product_flops,
    usable_cores,
)
from models.spec import Network, Resources
from tests.models.made import spec

BURNT_SECONDS = 2.0  # of a processor, however long that takes on a machine that is busy
BURN = f"import time\nwhile time.process_time() < {BURNT_SECONDS}: sum(range(1000))"


def test_the_machine() -> None:
    assert usable_cores() >= 1
    assert memory_mib() > 100
    assert cpu_name()


def test_work_of_our_own_processes_is_not_other_load() -> None:
    """The same burning child is ours by one root and others' by another."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as stranger:
        began = time.monotonic()
        ours, others = OtherLoad(os.getpid()), OtherLoad(stranger.pid)
        subprocess.run([sys.executable, "-c", BURN], check=True)
        difference = others.cores() - ours.cores()
        elapsed = time.monotonic() - began
        stranger.kill()
    assert 0.75 * BURNT_SECONDS < difference * elapsed < 1.5 * BURNT_SECONDS


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


def test_so_many_seconds_are_spent_and_one_product_at_least() -> None:
    import torch

    assert product_flops(torch.float32, threads=1, seconds=0) > 1e8


def test_a_precision_that_torch_does_not_know_has_no_peak() -> None:
    assert measure_peaks([PeakKey(precision="float1024", threads=1)], seconds=0) == []
    assert measure_peaks([PeakKey(precision="mm", threads=1)], seconds=0) == []


def test_as_a_process_it_prints_them() -> None:
    command = [sys.executable, "-m", "models.probes", "0", "float32:1", "float64:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [(each["precision"], each["threads"]) for each in json.loads(done.stdout)] == [
        ("float32", 1),
        ("float64", 1),
    ]


def test_a_trial_is_held_against_as_many_threads_as_it_has_cores() -> None:
    mllib = spec("mllib", resources=Resources(executors=3, cores=2))
    assert peak_key(mllib, cores=8) == PeakKey(precision="float64", threads=6)
    assert peak_key(mllib, cores=6) == PeakKey(precision="float64", threads=6)
    assert peak_key(mllib, cores=4) is None, "the machine has no more, so its speed with six is not known"
    assert peak_key(spec("torch-cpu", resources=Resources(threads=2)), cores=8) == PeakKey.parse("float32:2")


def test_what_has_no_peak() -> None:
    from dataclasses import replace

    assert peak_key(spec("torch-cuda"), cores=8) is None
    assert peak_key(spec("torch-cpu", resources=Resources()), cores=8) is None
    own = replace(spec("torch-cpu"), network=Network(sizes=(), source="mine:net"))
    assert peak_key(own, cores=8) is None


def test_only_what_the_trials_need_is_measured_and_the_baselines_precision_beside_it() -> None:
    specs = [spec("mllib", resources=Resources(executors=2, cores=1)), spec("torch-cpu"), spec("torch-cuda")]
    assert [str(key) for key in peak_keys(specs, precision="float32", cores=2)] == [
        "float32:1", "float32:2", "float64:2",
    ]  # fmt: skip


@pytest.mark.skipif(platform.machine() != "x86_64", reason="torch tells of x86 processors only")
def test_who_multiplies_in_bfloat16_is_as_torch_says() -> None:
    import torch

    told = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    assert multiplies_bfloat16() == told


IGNORES = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while time.process_time() < 1.0:
        pass
    print("worked", flush=True)
    sys.stdin.readline()
    os._exit(0)
time.sleep(600)
"""


def test_who_ends_and_is_counted_by_nobody_was_no_other_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """As PySpark's workers, whose daemon ignores their end: what they did before is not held against the machine."""
    with subprocess.Popen([sys.executable, "-c", IGNORES], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        try:
            assert daemon.stdin is not None
            assert daemon.stdout is not None
            assert daemon.stdout.readline() == b"worked\n"
            [worker] = psutil.Process(daemon.pid).children()
            load = OtherLoad(os.getpid())
            daemon.stdin.write(b"\n")
            daemon.stdin.flush()
            psutil.wait_procs([worker], timeout=30)
            began, ended = load._began, load._look()
            missing = (ended.machine - began.machine) - (ended.ours - began.ours)
            assert missing > 0.9, "its second"
            monkeypatch.setattr(load, "_look", lambda: ended)  # what others do from now on is of no interest
            assert load.cores() * (ended.at - began.at) < missing - 0.5
        finally:
            daemon.kill()
