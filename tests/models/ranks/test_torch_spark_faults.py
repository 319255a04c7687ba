"""What breaks under `torch-spark` while it trains, each for real: it ends soon and in one sentence, or is right."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.dataset import Dataset
from models.platforms.torch_spark import TorchSpark
from models.protocol import Epoch, TaintedError
from models.ranks import barrier_stage
from models.ranks.barrier_stage import BarrierStage
from models.ranks.executor_memory import ExecutorMemory
from models.ranks.telling import Listener
from models.ranks.worker import Errand, Told, train_in_step
from models.spark_application import SparkApplication
from models.spec import Resources
from store.errors import TrialError
from tests.models import reference
from tests.models.made import COLUMNS, packed, spec, surroundings
from tests.models.test_run import events
from tests.pipeline.place import eventually

pytestmark = pytest.mark.spark

ALONE = Resources(executors=1, cores=1, memory_mib=1024, deploy_mode="client")
ENDLESS = 1_000_000
STALL_SECONDS = 3.0
# What a port scanner, a browser and a broken client might send.
GARBAGE = (
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x00" * 64,
    b"\xff" * 64,
    (0).to_bytes(8, "little") + random.Random(1).randbytes(200),
    random.Random(2).randbytes(100_000),
    b"\n" * 500,
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """An epoch of it takes some milliseconds: the driver hears of each."""
    return packed(tmp_path_factory.mktemp("packed"), train_rows=40_000, row_group_rows=4_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("session")
    SparkApplication.end_shared()


@pytest.fixture
def trainer(folder: Path) -> TorchSpark:
    """Of one session: its application is shared until something happens to it."""
    return TorchSpark(surroundings(folder))


def below_the_driver() -> list[psutil.Process]:
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    return psutil.Process(gateway.proc.pid).children(recursive=True)


def named(process: psutil.Process, name: str) -> bool:
    with suppress(psutil.Error):
        return any(name in each for each in process.cmdline())
    return False


def executors() -> list[psutil.Process]:
    return [each for each in below_the_driver() if named(each, "CoarseGrainedExecutorBackend")]


def ranks() -> list[psutil.Process]:
    """Python processes that train: a daemon of each executor has forked them."""
    daemons = [each for each in below_the_driver() if named(each, "pyspark.daemon") and named(each.parent(), "java")]
    return [child for each in daemons for child in each.children()]


def has_torch(process: psutil.Process) -> bool:
    return any("libtorch_cpu" in each.path for each in process.memory_maps())


def train_until(
    trainer: TorchSpark, data: Dataset, *, fault: Callable[[], object], resources: Resources | None = None
) -> list[Epoch]:
    """Epochs without end; the fault happens after the third."""
    changes = {} if resources is None else {"resources": resources}
    epochs = []
    for epoch in trainer.train(spec("torch-spark", epochs=ENDLESS, **changes), data):
        epochs.append(epoch)
        if epoch.epoch == 3:
            fault()
    return epochs


def assert_right(trainer: TorchSpark, data: Dataset, **changes: Any) -> None:
    """A trial with all executors, and the losses of the reference."""
    trial = spec("torch-spark", **changes)
    epochs = list(trainer.train(trial, data))
    assert [epoch.loss for epoch in epochs] == pytest.approx(reference.losses(trial, data), rel=1e-5)
    assert {epoch.granted_executors for epoch in epochs} == {trial.resources.executors}


def assert_one_sentence(told: pytest.ExceptionInfo[Exception]) -> None:
    assert "\n" not in str(told.value)
    assert "Traceback" not in str(told.value)
    assert "at org.apache" not in str(told.value)


@pytest.mark.parametrize("resources", [None, ALONE], ids=["with a peer", "without one"])
def test_a_killed_executor_taints_and_the_next_trial_has_all_of_them(
    trainer: TorchSpark, data: Dataset, resources: Resources | None
) -> None:
    """FAULTS 24, 25: a preempted executor goes in the same way."""
    before: list[psutil.Process] = []

    def kill() -> None:
        before.extend(below_the_driver())
        executors()[0].kill()

    with pytest.raises(TaintedError, match=r"^executor \d was lost$"):
        train_until(trainer, data, fault=kill, resources=resources)
    eventually(lambda: not any(each.is_running() for each in before))
    assert_right(trainer, data, **({} if resources is None else {"resources": resources}))


def test_one_of_an_executors_processes_has_torch_in_memory_and_no_other(folder: Path, data: Dataset) -> None:
    """Spark hands tasks to processes in any order, and YARN ends a container for what all of them have together."""
    trainer = TorchSpark(surroundings(folder))
    for _ in range(3):
        assert_right(trainer, data, resources=replace(ALONE, cores=3))
    assert [has_torch(each) for each in ranks()].count(True) == 1


@pytest.mark.parametrize("resources", [None, ALONE], ids=["with a peer", "without one"])
def test_a_killed_python_names_the_memory_beside_the_heap(
    trainer: TorchSpark, data: Dataset, resources: Resources | None
) -> None:
    """FAULTS 26, as the kernel does it: the largest process goes, and its JVM stays."""
    with pytest.raises(TrialError, match=r"Python process of executor \d was killed") as told:
        train_until(trainer, data, fault=lambda: ranks()[0].kill(), resources=resources)
    assert "1536 MiB beside its heap: try yarnstick.spark.overhead_mib = 2304" in str(told.value)
    assert_one_sentence(told)


@pytest.mark.parametrize("resources", [None, ALONE], ids=["with a peer", "without one"])
def test_a_rank_that_stands_still_is_ended(folder: Path, data: Dataset, resources: Resources | None) -> None:
    trainer = TorchSpark(surroundings(folder, stall_seconds=STALL_SECONDS))
    # Processes that have not loaded torch yet may be silent for longer.
    assert_right(TorchSpark(surroundings(folder)), data, **({} if resources is None else {"resources": resources}))
    stopped: list[psutil.Process] = []

    def stop() -> None:
        stopped.append(ranks()[0])
        stopped[0].suspend()

    # By the one that waits for it, or by the driver; all are on one node here.
    named = r"^(executor on \S+ waited 3 s for the one on|the Python process of an executor on) 127\.0\.0\.1 "
    with pytest.raises(TrialError, match=named + r".*\(yarnstick.spark.stall_seconds\): .*that node") as told:
        train_until(trainer, data, fault=stop, resources=resources)
    assert_one_sentence(told)
    eventually(lambda: not stopped[0].is_running())


def idle() -> list[psutil.Process]:
    """Python processes that Spark keeps for the next tasks, in the order in which they came up."""
    return sorted(ranks(), key=lambda each: each.pid)


def test_a_slot_that_does_not_end_costs_its_application_and_no_epoch(
    folder: Path, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two tasks of an executor trains; the other's process stands still before its task begins."""
    trainer, wide = TorchSpark(surroundings(folder)), replace(ALONE, cores=2)
    assert_right(trainer, data, resources=wide)
    process = next(each for each in ranks() if not has_torch(each))
    process.suspend()
    with monkeypatch.context() as impatient:
        impatient.setattr(barrier_stage, "LEFT_SECONDS", 2.0)
        assert_right(trainer, data, resources=wide)
        eventually(lambda: not process.is_running())
    assert_right(trainer, data, resources=wide)


def test_a_task_that_stands_still_before_all_have_met_is_told(folder: Path, data: Dataset) -> None:
    """Whichever of the four it is: of each executor one trains, and the other only fills its slot."""
    wide = replace(ALONE, executors=2, cores=2)
    given = surroundings(folder)
    # Shared with no other test: the next one gets Spark's own patience again.
    trainer = TorchSpark(replace(given, spark_conf={**given.spark_conf, "spark.barrier.sync.timeout": "25s"}))
    SparkApplication.end_shared()
    assert_right(trainer, data, resources=wide)
    process = idle()[0]
    process.suspend()
    why = r"^not all 4 tasks of the executors met within 20 s: one of them stands still; look at \S+ for a Python"
    with pytest.raises(TrialError, match=why) as told:
        list(trainer.train(spec("torch-spark", resources=wide), data))
    assert_one_sentence(told)
    eventually(lambda: not process.is_running())
    assert_right(TorchSpark(given), data, resources=wide)


class Strangers:
    """Connect to whatever the ranks and the driver listen on, as long as they do, and send what nobody asked for."""

    def __init__(self) -> None:
        self.ports: set[int] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go_round, daemon=True)
        self._open: list[socket.socket] = []  # some stay
        self._others = set(listens(psutil.Process()))  # Spark's own

    def __enter__(self) -> Strangers:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        for each in self._open:
            each.close()

    def _go_round(self) -> None:
        while not self._ended.wait(0.01):
            for process in [psutil.Process(), *ranks()]:
                for address in set(listens(process)) - self._others:
                    self.ports.add(address[1])
                    for number, garbage in enumerate(GARBAGE):
                        self._send(address, garbage, stays=number % 2 == 1)

    def _send(self, address: tuple[str, int], garbage: bytes, *, stays: bool) -> None:
        with suppress(OSError):
            peer = socket.create_connection(address, timeout=1)
            peer.sendall(garbage)
            if stays and len(self._open) < 300:
                self._open.append(peer)
            else:
                peer.close()


def listens(process: psutil.Process) -> list[tuple[str, int]]:
    with suppress(psutil.Error):
        found = process.net_connections(kind="tcp")
        return [(each.laddr.ip, each.laddr.port) for each in found if each.status == psutil.CONN_LISTEN]
    return []


def test_strangers_on_every_port_change_no_number(folder: Path, data: Dataset) -> None:
    """None takes the place of a peer, nor keeps one from coming."""
    trainer = TorchSpark(surroundings(folder, stall_seconds=20.0))
    trial = spec("torch-spark", epochs=100)
    SparkApplication.shared(trial.resources, surroundings(folder))
    with Strangers() as strangers:
        epochs = list(trainer.train(trial, data))
    assert [epoch.loss for epoch in epochs] == pytest.approx(reference.losses(trial, data), rel=1e-5)
    assert len(strangers.ports) >= 3, "the driver's, and one of each rank"


def test_too_few_slots_are_told_before_anything_is_submitted(folder: Path, data: Dataset) -> None:
    application = SparkApplication.shared(spec("torch-spark").resources, surroundings(folder))
    wide = replace(spec("torch-spark").resources, executors=3, cores=2)
    stage = staged(application, resources=wide)
    with pytest.raises(TrialError, match=r"6 cores is needed at once, and Spark has 2 on 2 executors") as told:
        list(run(stage, errand(data, application.listener())))
    assert_one_sentence(told)


def test_a_driver_that_nodes_do_not_reach_is_one_sentence(folder: Path, data: Dataset) -> None:
    application = SparkApplication.shared(spec("torch-spark").resources, surroundings(folder))
    with application.listener() as listener:
        pass
    with pytest.raises(TrialError, match=r"could not begin: ConnectionRefusedError: \[Errno 111\]") as told:
        list(run(staged(application), errand(data, listener)))
    assert_one_sentence(told)


def test_an_executor_without_a_task_is_told_and_not_waited_for(folder: Path, data: Dataset) -> None:
    application = SparkApplication.shared(spec("torch-spark").resources, surroundings(folder))
    three = spec("torch-spark", resources=replace(spec("torch-spark").resources, executors=3))
    with application.listener() as listener:
        given, _ = errand(data, listener)
        why = r"^Spark gave tasks to 2 executors, on 127\.0\.0\.1, and executors=3 train: .*; run again, or"
        with pytest.raises(TrialError, match=why) as told:
            list(run(staged(application), (replace(given, spec=three), listener)))
    assert_one_sentence(told)


def staged(application: SparkApplication, *, resources: Resources | None = None) -> BarrierStage:
    """A stage of this application, which may take it for larger than it is."""
    given = application.resources
    application.resources = resources or given
    memory = ExecutorMemory(heap=1024, beside=1536, in_python=True)
    stage = BarrierStage(application, group="made", memory=memory)
    application.resources = given
    return stage


def errand(data: Dataset, listener: Listener) -> tuple[Errand, Listener]:
    return (
        Errand(
            spec=spec("torch-spark"),
            data=data,
            reach=None,
            address=listener.address,
            stall_seconds=20.0,
            resident_mib=100.0,
        ),
        listener,
    )


def run(stage: BarrierStage, given: tuple[Errand, Listener]) -> Iterator[Told]:
    return stage.run(*given, train=train_in_step, told_as=Told)


def test_what_data_and_weights_do_is_an_outcome_and_the_next_trial_goes_on(tmp_path: Path) -> None:
    """FAULTS 16, 48: in one session, as a run has it."""
    datasets = {
        "sound": packed(tmp_path / "sound"),
        "nan": with_a_row_of_nan(tmp_path / "nan"),
        "cut": packed(tmp_path / "cut"),
        "missing": packed(tmp_path / "missing"),
    }
    [cut, missing] = [Path(datasets[name].train[0]) for name in ("cut", "missing")]
    cut.write_bytes(cut.read_bytes()[:-100])
    missing.unlink()
    trials = [spec("torch-spark", data=name) for name in ("nan", "cut", "missing")]
    l_bfgs = spec("torch-spark", data="nan", solver="l-bfgs", learning_rate=None)
    far = spec("torch-spark", data="sound", learning_rate=1e38, epochs=20)
    sound = spec("torch-spark", data="sound")
    told = events(tmp_path, *trials, l_bfgs, far, sound, datasets=datasets)

    ends = [event for event in told if event.kind == "ended"]
    assert [event.outcome for event in ends] == ["diverged", "failed", "failed", "diverged", "diverged", "ok"]
    assert ends[0].reason == ends[3].reason == "diverged at epoch 1"
    assert str(cut) in (ends[1].reason or "")
    assert str(missing) in (ends[2].reason or "")
    assert all("\n" not in (event.reason or "") for event in ends)
    nan = [event.record for event in told if event.record and event.slug in (trials[0].slug, l_bfgs.slug)]
    assert [record.loss for record in nan] == [None, None]
    last = [event.record for event in told if event.record and event.slug == sound.slug]
    assert [record.loss for record in last] == pytest.approx(reference.losses(sound, datasets["sound"]), rel=1e-5)


def with_a_row_of_nan(folder: Path) -> Dataset:
    """Values that are packed as they are; one row, in the last share, has no numbers."""
    made = packed(folder)
    values = made.values(made.read_train(1.0)[0], "float32")
    values[-1] = np.nan
    for path, rows, labels in (
        (made.train[0], values, made.read_train(1.0)[1]),
        (made.test[0], made.values(made.read_test()[0], "float32"), made.read_test()[1]),
    ):
        packing = pa.binary(COLUMNS * 4)
        features = pa.FixedSizeBinaryArray.from_buffers(packing, len(rows), [None, pa.py_buffer(rows.tobytes())])
        pq.write_table(pa.table({"features": features, "label": labels}), path)
    return replace(made, dtype="float32")
