"""The real job over real files: by itself, in this process, and in processes of its own."""

import gzip
import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mapreduce.mr_pixel_range import MRPixelRange
from store.errors import DataError

ROWS = b"1,20,0\n3,10,1\n2,30,0\n"
FOUND = {"rows": 3, "minimum": [1, 10], "maximum": [3, 30]}
TOP = Path(__file__).parent.parent.parent


def found(*arguments: str, stdin: bytes = b"") -> dict:
    job = MRPixelRange(["--no-conf", "-q", *arguments]).sandbox(stdin=io.BytesIO(stdin))
    with job.make_runner() as runner:
        runner.run()
        (line,) = b"".join(runner.cat_output()).splitlines()
    return json.loads(line)


def started(*arguments: str, folder: Path = TOP) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "mapreduce.mr_pixel_range", "--no-conf", *arguments]
    return subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": str(TOP)}, capture_output=True, timeout=120, check=False
    )


@pytest.fixture
def file(tmp_path):
    def write(data: bytes, name: str = "rows.csv") -> str:
        path = tmp_path / name
        path.write_bytes(data)
        return str(path)

    return write


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        ROWS.removesuffix(b"\n"),
        ROWS.replace(b"\n", b"\r\n"),
        ROWS.replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + ROWS,
        b"\xef\xbb\xbf" + ROWS.replace(b"\n", b"\r\n"),
    ],
)
def test_minimum_and_maximum_of_every_column_but_the_label(file, data):
    assert found(file(data)) == FOUND


def test_from_standard_input():
    assert found("-", stdin=ROWS) == FOUND


def test_real_numbers_come_back_as_they_were(file):
    assert found(file(b"0.1,1e-7,0\n-2.5,1e300,1\n")) == {"rows": 2, "minimum": [-2.5, 1e-7], "maximum": [0.1, 1e300]}


@pytest.mark.parametrize("arguments", [[], ["-r", "local", "--num-cores", "1"], ["-r", "local", "--num-cores", "3"]])
def test_the_number_of_tasks_does_not_matter(file, arguments):
    paths = [file(ROWS * 50, "one.csv"), file(b"0,5,1\n" * 9, "two.csv")]
    assert found(*arguments, *paths) == {"rows": 159, "minimum": [0, 5], "maximum": [3, 30]}


def test_inline_the_input_is_read_where_it_lies(file):
    path = Path(file(ROWS))
    job = MRPixelRange(["--no-conf", "-q", str(path)])
    with job.make_runner() as runner:
        runner.run()
        made = [each for each in Path(job.options.local_tmp_dir).rglob("*") if each.is_file()]
        assert [each.resolve() for each in made if each.name == "input" and each.parts[-3] == "mapper"] == [path]


def test_in_processes_of_its_own_from_anywhere(file, tmp_path):
    done = started("-r", "local", "-q", file(ROWS * 10), folder=tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (0, FOUND | {"rows": 30})


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_by_hand_a_bad_row_is_one_sentence_with_its_line(file, runner):
    path = file(ROWS * 200 + b"1,2,3,4\n" + ROWS * 200)
    done = started("-r", runner, path)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == f"Error: {path}:601: 4 columns, but 3 are expected"
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr or runner == "local"


def test_rows_of_different_width_in_different_tasks_are_ragged_too(file):
    one, two = file(b"1,2,3,0\n", "one.csv"), file(b"1,2,0\n", "two.csv")
    with pytest.raises(DataError, match=f"{two}:1: 3 columns, but {one}:1 has 4"):
        found(one, two)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is empty"),
        (b"a,b,c\n1,2,0\n", ":1: 'a' is not a number; .*yarnstick.csv.header = true"),
        (ROWS + b"1,nan,0\n", ":4: column 2 holds 'nan'"),
        (ROWS + b"1,2,\n", ":4: the label is missing"),
        (ROWS + b"1,2,7\n", ":4: the label '7' is outside 0..1"),
        (ROWS + b"1,99,1\n", ":4: column 2 holds '99', above the maximum of 50"),
    ],
)
def test_what_is_wrong_is_said(file, data, sentence):
    with pytest.raises(DataError, match=sentence):
        found("--classes", "2", "--minimum", "0", "--maximum", "50", file(data))


def test_every_member_of_a_gzip_counts_and_a_cut_one_is_refused(file):
    members = gzip.compress(ROWS) + gzip.compress(b"0,5,1\n")
    expected = {"rows": 4, "minimum": [0, 5], "maximum": [3, 30]}
    assert found(file(members, "rows.csv.gz")) == expected
    path = file(members[:-9], "cut.csv.gz")
    with pytest.raises(DataError, match=f"{path} is damaged"):
        found(path)
    for name in ("unpacked.csv", "yarnstick-unpacked.csv"):
        path = file(b"1,x,0\n", name)
        with pytest.raises(DataError, match=f"^{path}:1: column 2"):
            found(path)
    path = file(gzip.compress(b"1,x,0\n"), "bad.csv.gz")
    with pytest.raises(DataError, match=f"^{path}:1: column 2"):
        found(path)


def test_its_directory_is_private_and_goes_away(file, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    job = MRPixelRange(["--no-conf", "-q", file(ROWS)])
    with job.make_runner() as runner:
        runner.run()
        (made,) = tmp_path.glob("yarnstick.*")
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
        assert Path(runner.get_output_dir()).is_relative_to(made)
    del runner, job
    assert not list(tmp_path.glob("yarnstick.*"))


def test_a_name_with_wildcards_is_one_file(file):
    assert found(file(ROWS, "odd [1] *?.csv")) == FOUND


def test_the_mapper_over_bytes():
    job = MRPixelRange(["--mapper"]).sandbox(stdin=io.BytesIO(ROWS))
    job.run_mapper()
    key, value = job.stdout.getvalue().rstrip(b"\n").split(b"\t")
    assert json.loads(key) == "range"
    assert json.loads(value).items() >= FOUND.items()


def test_no_tab_is_added_by_hadoop():
    assert MRPixelRange([]).jobconf()["mapreduce.output.textoutputformat.separator"] == ","
