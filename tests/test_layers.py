"""Imports point one way: pipeline to report to models to yarn to store, and pipeline to mapreduce to yarn to store."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
MAY_IMPORT = {
    "store": set(),
    "yarn": {"store"},
    "mapreduce": {"yarn", "store"},
    "models": {"yarn", "store"},
    "report": {"models", "store"},
    "pipeline": {"report", "models", "mapreduce", "yarn", "store"},
    "cluster": set(),
}
OURS = MAY_IMPORT.keys() | {"tests", "bench"}
FILES = sorted(path for package in MAY_IMPORT for path in (TOP / package).rglob("*.py"))


def imported(source: str) -> set[str]:
    """Top-level names of every import in a file, those inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." if node.level else (node.module or "").partition(".")[0])
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module" and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant):
                found.add(str(first.value).partition(".")[0])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TOP)))
def test_a_file_imports_only_the_layers_below(path: Path) -> None:
    package = path.relative_to(TOP).parts[0]
    names = imported(path.read_text(encoding="utf-8"))
    assert "." not in names, "relative imports hide which layer is meant"
    assert names & OURS <= MAY_IMPORT[package] | {package}


def test_only_the_pipeline_knows_luigi() -> None:
    knowing = {
        path.relative_to(TOP).parts[0] for path in FILES if "luigi" in imported(path.read_text(encoding="utf-8"))
    }
    assert knowing <= {"pipeline"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TOP)))
def test_no_module_shadows_a_library(path: Path) -> None:
    """The directory of a script that is started is searched first: a platform.py there breaks torch and pyspark."""
    libraries = {"platform", "numpy", "keras", "torch", "sklearn", "dask", "tensorflow", "pyspark", "json", "types"}
    assert path.stem not in libraries


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TOP)))
def test_every_module_says_why_it_exists(path: Path) -> None:
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert said


def test_the_check_sees_an_import_in_a_function() -> None:
    assert imported("def f():\n    from pipeline.config import x\n    import_module('report.page')") == {
        "pipeline",
        "report",
    }
