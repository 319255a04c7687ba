"""Which code a user's own network was trained with, by what may be in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from models.own_code import _digest, own_code
from models.spec import Network

LAYER = "def Net(inputs, classes): ...\n"


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    monkeypatch.syspath_prepend(str(tmp_path))

    def found(module: str) -> str:
        _digest.cache_clear()
        for name in [each for each in sys.modules if each.partition(".")[0] == module.partition(".")[0]]:
            del sys.modules[name]
        network = Network(sizes=(4, 2), source=f"{module}:Net")
        [told] = own_code(network).values()
        return told

    return found


@pytest.mark.parametrize("module", ["nets_own", "nets_own.deep", "nets_own.deep.wide"])
def test_a_package_is_all_of_its_files(tmp_path: Path, digest: Callable[[str], str], module: str) -> None:
    """What a network takes from beside it is as much of it as its own file."""
    deep = tmp_path / "nets_own" / "deep"
    deep.mkdir(parents=True)
    for path in (deep.parent / "__init__.py", deep / "__init__.py", deep / "wide.py", deep.parent / "blocks.py"):
        path.write_text(LAYER)
    (tmp_path / "beside.py").write_text(LAYER)
    before = digest(module)
    (tmp_path / "beside.py").write_text("# other\n")
    assert digest(module) == before
    (deep.parent / "blocks.py").write_text("# other\n")
    assert digest(module) != before


def test_a_module_that_stands_alone_is_its_file(tmp_path: Path, digest: Callable[[str], str]) -> None:
    (tmp_path / "net_alone.py").write_text(LAYER)
    before = digest("net_alone")
    (tmp_path / "beside.py").write_text(LAYER)
    assert digest("net_alone") == before
    (tmp_path / "net_alone.py").write_text(LAYER + "# other\n")
    assert digest("net_alone") != before


def test_one_that_is_not_there_has_no_digest() -> None:
    assert own_code(Network(sizes=(4, 2), source="not_there_at_all:Net")) == {}
    assert own_code(Network(sizes=(4, 2))) == {}
