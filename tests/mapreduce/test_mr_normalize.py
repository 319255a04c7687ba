"""The real job over real files: exact values, shortest texts, the order of the input."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mapreduce.mr_normalize import MRNormalize
from mapreduce.mr_pixel_range import MRPixelRange
from store.errors import DataError

TOP = Path(__file__).parent.parent.parent


@pytest.fixture
def normalized(tmp_path):
    """Rows of test scaled by the range of train."""

    def run(train: bytes, *arguments: str, test: bytes | None = None) -> bytes:
        (tmp_path / "train.csv").write_bytes(train)
        (tmp_path / "test.csv").write_bytes(train if test is None else test)
        for job, paths in (
            (MRPixelRange, [str(tmp_path / "train.csv")]),
            (MRNormalize, ["--range", str(tmp_path / "range.json"), *arguments, str(tmp_path / "test.csv")]),
        ):
            made = job(["--no-conf", "-q", *paths])
            with made.make_runner() as runner:
                runner.run()
                output = b"".join(runner.cat_output())
            if job is MRPixelRange:
                (tmp_path / "range.json").write_bytes(output)
        return output

    return run


def test_bytes_as_whole_numbers_with_the_label_unchanged(normalized):
    assert normalized(b"0,51,3\n255,0,12\n") == b"0,0.2,3\n1,0,12\n"


def test_every_byte_by_the_range_of_all_pixels_is_python_s_own_division(normalized):
    data = b"".join(b"%d,%d,%d\n" % (byte, 255 - byte, byte % 10) for byte in range(256))
    text = "".join(
        f"{repr(byte / 255).removesuffix('.0')},{repr((255 - byte) / 255).removesuffix('.0')},{byte % 10}\n"
        for byte in range(256)
    )
    assert normalized(data) == text.encode()


def test_each_pixel_by_its_own_range(normalized):
    assert normalized(b"0,10,7,3\n200,20,7,4\n50,15,7,5\n", "--scale", "pixel") == b"0,0,0,3\n1,1,0,4\n0.25,0.5,0,5\n"


@pytest.mark.parametrize("scale", ["global", "pixel"])
def test_a_constant_becomes_zero_in_every_row(normalized, scale):
    assert normalized(b"7,7,0\n7,7,1\n", "--scale", scale, test=b"7,9,0\n0.5,7,1\n") == b"0,0,0\n0,0,1\n"


def test_a_test_value_may_lie_outside_of_the_range_of_train(normalized):
    assert normalized(b"10,20,0\n30,20,1\n", test=b"50,5,0\n0,30,1\n") == b"2,-0.25,0\n-0.5,1,1\n"


@pytest.mark.parametrize("scale", ["global", "pixel"])
def test_real_numbers_read_back_as_they_were_computed(normalized, scale):
    random = np.random.default_rng(0)
    values = np.concatenate(
        [random.normal(size=(300, 3)), random.random((50, 3)) * 1e-6, random.normal(size=(50, 3)) * 1e9]
    )
    data = "".join(",".join(map(repr, row)) + f",{index}\n" for index, row in enumerate(values.tolist()))
    low, high = (values.min(axis=0), values.max(axis=0)) if scale == "pixel" else (values.min(), values.max())
    expected = ((values - low) / (high - low)).tolist()
    lines = normalized(data.encode(), "--scale", scale).decode().splitlines()
    for index, (line, row) in enumerate(zip(lines, expected, strict=True)):
        *cells, label = line.split(",")
        assert label == str(index)
        assert cells == [repr(value).removesuffix(".0") for value in row]


def test_values_far_from_one_are_written_as_short_as_python_does(normalized):
    output = normalized(b"0,1,0\n", test=b"1e-5,-1.5e-7,0\n1e22,-123456789012345,1\n-0.0,0.5,2000\n")
    assert output == b"1e-05,-1.5e-07,0\n1e+22,-123456789012345,1\n0,0.5,2000\n"


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_the_order_is_that_of_the_input(normalized, runner):
    data = b"".join(b"%d,%d,%d\n" % (row % 256, row // 256 % 256, row) for row in range(5000))
    lines = normalized(data, "-r", runner, "--num-cores", "6").splitlines()
    assert [int(line.rpartition(b",")[2]) for line in lines] == list(range(5000))


def test_a_row_of_another_width_than_the_range_has_its_line(normalized):
    with pytest.raises(DataError, match=r"test.csv:1: 2 columns, but 3 are expected"):
        normalized(b"1,2,0\n", test=b"1,0\n")


def test_values_that_are_too_far_apart_are_refused(normalized):
    with pytest.raises(DataError, match="too far apart"):
        normalized(b"-1e308,1e308,0\n")
    with pytest.raises(DataError, match="too far outside"):
        normalized(b"0,1e-300,0\n", test=b"1e300,1,0\n")
    assert normalized(b"0,5e-324,0\n5e-324,0,1\n") == b"0,1,0\n1,0,1\n"


def test_by_hand_with_a_range_and_no_tab_at_the_end(tmp_path):
    (tmp_path / "range.json").write_text(json.dumps({"rows": 2, "minimum": [0, 0], "maximum": [255, 51]}))
    (tmp_path / "rows.csv").write_bytes(b"0,51,3\n255,0,1\n")
    command = [sys.executable, "-m", "mapreduce.mr_normalize", "--no-conf", "-q"]
    for runner in ("inline", "local"):
        done = subprocess.run(
            [*command, "-r", runner, "--range", "range.json", "--scale", "pixel", "rows.csv"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(TOP)},
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, b"0,1,3\n1,0,1\n"), done.stderr.decode()
    assert MRNormalize([]).jobconf()["mapreduce.output.textoutputformat.separator"] == ","


def test_the_mapper_over_bytes(tmp_path):
    (tmp_path / "range.json").write_text(json.dumps({"rows": 2, "minimum": [0], "maximum": [4]}))
    job = MRNormalize(["--mapper", "--range", str(tmp_path / "range.json")])
    job.sandbox(stdin=io.BytesIO(b"1,0\n4,1\n")).run_mapper()
    assert job.stdout.getvalue() == b"0.25,0\n1,1\n"
