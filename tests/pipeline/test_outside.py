"""What comes from outside the package, found by a real run: CONTRIBUTING's own platform, and users' own networks."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from tests.pipeline.place import TOP, YARNSTICK, Place

PROFILE = """
[yarnstick]
noisy_share = 1
noisy_repeats = 0
probe_seconds = 0
lease = lease.lock

[profile.tiny]
datasets = synthetic:200x6x3
networks = mlp:*-8-*
platforms = scipy numpy
solvers = l-bfgs gd
threads = 1
fractions = 1.0
epochs = 3
trials = 1
"""
MADE = "from torch import nn\ndef make(inputs, classes): return nn.Linear(inputs, {width})\n"


def comparison(place: Place, run_id: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(place.report(run_id)["comparison.csv"].decode())))


def install(packages: Path) -> None:
    """The platform of CONTRIBUTING.md as a distribution of its own."""
    manual = (TOP / "CONTRIBUTING.md").read_text()
    [code] = re.findall(r"^```python\n(.*?)^```", manual, re.DOTALL | re.MULTILINE)
    [entry] = re.findall(r"scipy = my_package[\w.]*:Scipy", manual)
    package, about = packages / "my_package", packages / "my_package-1.0.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "__init__.py").touch()
    (package / "scipy_platform.py").write_text(code)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[yarnstick.platforms]\n{entry}\n")


def test_the_platform_of_contributing_is_in_the_table(tmp_path: Path) -> None:
    place = Place(tmp_path, PROFILE)
    install(place.folder / "packages")
    done = place.run("run", "--profile", "tiny", "--run-id", "R")
    assert done.returncode == 0, done.stderr
    rows = {(row["platform"], row["solver"]): row for row in comparison(place, "R")}
    assert rows.keys() == {(name, solver) for name in ("scipy", "numpy") for solver in ("gd", "l-bfgs")}
    ours, theirs = rows["numpy", "gd"], rows["scipy", "l-bfgs"]
    for row in (ours, theirs):
        assert (row["status"], row["trials"], row["total_cores"]) == ("ok", "1", "1")
        assert float(row["mean_seconds"]) > 0
        assert 0 <= float(row["final_accuracy"]) <= 1
    assert (ours["precision"], theirs["precision"]) == ("float32", "float64")
    assert float(theirs["loss"]) < float(ours["loss"])
    records = list(csv.DictReader(io.StringIO(place.report("R")["epochs.csv"].decode())))
    assert {row["parameters"] for row in records} == {str((6 + 1) * 8 + (8 + 1) * 3)}
    assert rows["scipy", "gd"]["status"] == "not run: scipy has the solver l-bfgs, not gd"
    assert "has the solvers gd and sgd, not l-bfgs" in rows["numpy", "l-bfgs"]["status"]


def test_a_users_networks_are_found_in_the_working_directory(tmp_path: Path) -> None:
    """Even one in a file that is named like a package of ours does not harm the others."""
    place = Place(tmp_path, PROFILE)
    for name, width in (("good", 3), ("bad", 7), ("models", 3)):
        (place.folder / f"{name}.py").write_text(MADE.format(width=width))
    networks = "profile.tiny.networks=torch:good:make torch:bad:make"
    lists = ("--set", "profile.tiny.platforms=torch-cpu numpy", "--set", "profile.tiny.solvers=gd")
    given = ("--profile", "tiny", "--run-id", "R", "--set", networks, *lists)
    # As the installed command has it: python -c would have the working directory first on its path.
    done = place.run("run", *given, command=[YARNSTICK[0], "-P", *YARNSTICK[1:]])
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert "torch:bad:make" in done.stderr
    rows = {(row["platform"], row["network"]): row["status"] for row in comparison(place, "R")}
    assert rows["torch-cpu", "torch:good:make"] == "ok"
    assert rows["torch-cpu", "torch:bad:make"].startswith("failed: torch:bad:make (")
    assert (
        f"{place.folder / 'bad.py'} line 2) gives 2 x 7 for 2 rows; it must give" in rows["torch-cpu", "torch:bad:make"]
    )
    assert "torch:good:make is a module of torch" in rows["numpy", "torch:good:make"]
    records = place.report("R")["epochs.csv"].decode()
    found = {row["network"]: row["parameters"] for row in csv.DictReader(io.StringIO(records)) if row["seconds"]}
    assert found == {"torch:good:make": "21"}
