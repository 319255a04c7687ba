"""Any name becomes a path segment that every file system and HDFS takes."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from store.slug import LONGEST, slug

NASTY = st.sampled_from(
    ["", ".", "..", "/", "a/../b", "-rf", ".hidden", "con", "a:b", "\x00", "İ", "\ud800", "A" * 5000]
)


@given(st.text(st.characters()) | NASTY)
def test_a_slug_is_a_safe_segment(name: str) -> None:
    made = slug(name)
    assert re.fullmatch(r"[a-z0-9._-]+", made)
    assert re.search(r"[0-9a-f]{8}$", made)
    assert made[0] not in ".-_"
    assert len(made) <= LONGEST + 9
    assert slug(name) == made


@given(st.text(), st.text())
def test_names_that_look_alike_once_cleaned_stay_apart(one: str, other: str) -> None:
    assert (slug(one) == slug(other)) == (one == other)


def test_the_digest_can_stand_for_more_than_the_name() -> None:
    assert slug("mnist", over="a").startswith("mnist-")
    assert slug("mnist", over="a") != slug("mnist", over="b")


def test_a_slug_never_changes() -> None:
    """Runs of older versions are found by it."""
    assert slug("mlp:784-1024-10") == "mlp-784-1024-10-cda3200c"
