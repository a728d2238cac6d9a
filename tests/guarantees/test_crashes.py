"""A learner killed at any moment: what it had not committed is done again, and to the same byte."""

from __future__ import annotations

import pytest
from guarded import Stream, Told
from launcher import PLACES


@pytest.mark.parametrize("place", PLACES)
def test_windows_that_markers_close_come_out_the_same(stream: Stream, undisturbed: list[Told], place: str) -> None:
    stream.tell()
    stream.crash(place, window=2)
    stream.learn_until(3)
    assert stream.told() == undisturbed
    assert stream.check().problems == []
