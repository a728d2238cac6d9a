"""Damaged files for Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def damaged(draw: st.DrawFn, data: bytes, most: int = 64) -> bytes:
    """The same bytes, up to eight pieces of them overwritten by up to `most` other bytes, and perhaps cut short."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, len(data) - 1))
        piece = draw(st.binary(min_size=1, max_size=most))[: len(data) - start]
        changed[start : start + len(piece)] = piece
    return bytes(changed[: draw(st.one_of(st.just(len(data)), st.integers(0, len(data))))])
