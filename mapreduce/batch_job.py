"""What both jobs share: a mapper that is handed batches of checked rows in place of lines, and private directories."""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import itertools
import os
import shutil
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar

from mrjob.compat import jobconf_from_env
from mrjob.inline import InlineMRJobRunner
from mrjob.job import MRJob

from mapreduce.ahead import ahead
from mapreduce.inline import InPlaceRunner
from mapreduce.rows import LONGEST_LINE_BYTES, Declared, Origin, Rows, parse, read_batches, width
from store.errors import DataError, YarnstickError

if TYPE_CHECKING:
    from mapreduce.hadoop_runner import Hadoop

# mrjob itself reads a damaged gzip as if it ended there, and only the first member of one that has several.
DECOMPRESS: dict[str, Callable[[str], IO[bytes]]] = {".gz": gzip.open, ".bz2": bz2.open}  # type: ignore[dict-item]
UNPACKED, PLAIN = "/yarnstick-unpacked", ".yarnstick-plain"


class BatchJob(MRJob):
    """Hadoop and mrjob split the input by lines; the mapper of a subclass gets `Rows`, thousands of them at once."""

    # Hadoop takes a line apart at the separator, and puts a tab behind one that has none; it drops an empty separator.
    # All of our lines have a comma: they are joined as they were. The second committer is unsafe by its own
    # documentation. A bad row stays bad: one repeat is for nodes that fail.
    JOBCONF: ClassVar[dict[str, str]] = {
        "stream.reduce.output.field.separator": ",",
        "mapreduce.output.textoutputformat.separator": ",",
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
        "mapreduce.map.maxattempts": "2",
        "mapreduce.reduce.maxattempts": "2",
    }

    # Set where the cluster is known: then mrjob needs no JVM to ask it.
    hadoop: ClassVar[Hadoop | None] = None

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--columns", type=int, help="How many features a row has; as the first row if not given")
        self.add_passthru_arg("--classes", type=int, help="Labels lie in 0..classes-1; any whole number if not given")
        self.add_passthru_arg("--minimum", type=float, help="The smallest value a feature may have")
        self.add_passthru_arg("--maximum", type=float, help="The largest value a feature may have")
        self.add_passthru_arg("--longest-line-bytes", type=int, default=LONGEST_LINE_BYTES)

    def dirs(self) -> list[str]:
        """mrjob ships the job's own file; the packages that it imports go along, for processes of their own."""
        package = Path(__file__).resolve().parent
        is_elsewhere = (self.options.runner or "inline") != "inline"
        return [str(package), str(package.parent / "store")] if is_elsewhere else []

    def load_args(self, args: list[str]) -> None:
        super().load_args(args)
        if not self.is_task():
            self.options.cmdenv = {"PYTHONPATH": "."} | (self.options.cmdenv or {})

    def _runner_class(self) -> Any:
        chosen = super()._runner_class()
        if chosen.alias == "hadoop" and self.hadoop is not None:
            from mapreduce.hadoop_runner import OneJvmRunner

            return OneJvmRunner
        return InPlaceRunner if chosen is InlineMRJobRunner else chosen

    def make_runner(self) -> Any:
        if not self.options.local_tmp_dir:
            # mrjob's own choice is a predictable name that everybody may read.
            self.options.local_tmp_dir = tempfile.mkdtemp(prefix="yarnstick.")
            weakref.finalize(self, shutil.rmtree, self.options.local_tmp_dir, ignore_errors=True)
        if (self.options.runner or "inline") in ("inline", "local"):
            self.options.args = [path for pattern in self.options.args for path in self._unpacked(pattern)]
        runner = super().make_runner()
        if self.hadoop is not None:
            runner.hadoop = self.hadoop
        if runner.alias in ("inline", "local"):
            runner.cat_output = lambda: _in_order(Path(runner.get_output_dir()))
        return runner

    def run_job(self) -> None:
        """By hand: the sentence of a task that failed is the last line of standard error."""
        try:
            super().run_job()
        except SystemExit:
            raise DataError(failure(Path(self.options.local_tmp_dir)) or "the job failed") from None

    @classmethod
    def run(cls) -> None:
        try:
            super().run()
        except YarnstickError as error:
            sys.exit(f"Error: {error}")

    def prepare(self, rows: Rows) -> Any:
        """What the mapper gets of a batch. It runs beside the other batches, in threads."""
        return rows

    def run_mapper(self, step_num: int = 0) -> None:
        _, write = self.pick_protocols(step_num, "mapper")
        for key, value in self.map_pairs(((None, batch) for batch in self._batches()), step_num):
            self.stdout.write(write(key, value))
            self.stdout.write(b"\n")

    def origin(self) -> Origin:
        """What this task reads: a file, or the part of it that begins at a byte."""
        path = (jobconf_from_env("mapreduce.map.input.file") or "standard input").removeprefix("file://")
        _, _, packed = path.rpartition(UNPACKED)
        start = int(jobconf_from_env("mapreduce.map.input.start") or 0)
        return Origin(name=packed.removesuffix(PLAIN) if path.endswith(PLAIN) else path, path=path, start=start)

    def _batches(self) -> Iterator[Any]:
        """The task's input, prepared, in order; some batches ahead on other cores."""
        stdin = self.stdin if hasattr(self.stdin, "read") else io.BytesIO(b"".join(self.stdin))
        origin = self.origin()
        batches = read_batches(stdin, origin=origin, longest_line_bytes=self.options.longest_line_bytes)
        first = next(batches, None)
        if first is None:
            if origin.start:
                return  # the line that Hadoop cut here belongs to the part before
            raise DataError(f"{origin.name} is empty: it holds no row")
        given = self.options
        declared = Declared(
            columns=given.columns or width(first), classes=given.classes, minimum=given.minimum, maximum=given.maximum
        )
        yield from ahead(lambda batch: self.prepare(parse(batch, declared)), itertools.chain([first], batches))

    def _unpacked(self, pattern: str) -> Iterator[str]:
        """The files of an input argument; a compressed one as a plain file with every member of it."""
        for path in sorted(glob.glob(pattern)) or [pattern]:
            suffix = Path(path).suffix
            if suffix not in DECOMPRESS or not Path(path).is_file():
                yield glob.escape(path)
                continue
            # The plain file lies under the path of the compressed one, so that a task can name it.
            plain = f"{self.options.local_tmp_dir}{UNPACKED}{Path(path).absolute()}{PLAIN}"
            os.makedirs(os.path.dirname(plain), exist_ok=True)
            try:
                with DECOMPRESS[suffix](path) as packed, open(plain, "wb") as file:
                    shutil.copyfileobj(packed, file, 1 << 20)
            except (EOFError, zlib.error, OSError) as error:
                raise DataError(f"{path} is damaged: {error}") from None
            yield glob.escape(plain)


def _in_order(folder: Path) -> Iterator[bytes]:
    """The output as it stands in the input; mrjob would take its parts as the file system lists them."""
    for path in sorted(folder.glob("part-*")):
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                yield block


def failure(folder: Path) -> str | None:
    """The sentence that a task process of mrjob's local runner ended with."""
    for path in sorted(folder.rglob("stderr")):
        for line in path.read_text("utf-8", "replace").splitlines():
            if line.startswith("Error: "):
                return line.removeprefix("Error: ")
    return None
