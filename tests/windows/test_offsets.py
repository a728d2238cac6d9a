"""Where a window ended is where the next one starts."""

from __future__ import annotations

from ledgers import genesis_record, window_record

from stream_cgzsl.windows.offsets import ends_of


def test_a_record_says_where_the_next_window_starts() -> None:
    assert ends_of(window_record(3, holdout={0: 5, 1: 0})) == {
        "attributes": {0: 3, 1: 0},
        "features": {0: 30, 1: 0},
        "control": {0: 3},
        "holdout": {0: 5, 1: 0},
    }


def test_the_first_window_starts_where_the_topics_began() -> None:
    assert ends_of(genesis_record())["features"] == {0: 0, 1: 0}
