"""A peak is seen after it is over, and can be forgotten."""

from __future__ import annotations

from models.ranks.peak_memory import forget_peak, peak_mib

SOME_MIB = 200


def test_a_peak_is_seen_until_it_is_forgotten() -> None:
    forget_peak()
    before = peak_mib()
    block = bytearray(SOME_MIB << 20)
    del block
    high = peak_mib()
    assert high > before + SOME_MIB / 2
    forget_peak()
    assert peak_mib() < high - SOME_MIB / 2
