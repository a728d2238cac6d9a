"""The harmonic mean of two accuracies."""

from __future__ import annotations

import pytest

from stream_cgzsl.schemas import harmonic_mean


@pytest.mark.parametrize(
    ("seen", "unseen", "expected"),
    [
        (0.5, 0.5, 0.5),
        (1.0, 0.5, 2 / 3),
        (80, 20, 32),
        (0.0, 0.0, 0.0),
        (1.0, 0.0, 0.0),
        (None, 1.0, None),
        (1.0, None, None),
    ],
)
def test_harmonic_mean(seen: float | None, unseen: float | None, expected: float | None) -> None:
    assert harmonic_mean(seen, unseen) == expected
