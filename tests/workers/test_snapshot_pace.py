"""When a learner writes its snapshot."""

from __future__ import annotations

import numpy as np
import pytest

from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.workers import snapshot_pace
from stream_cgzsl.workers.snapshot_pace import SnapshotPace

WHOLE = Generation(
    1, ("a",), np.ones(1, bool), np.ones((1, 2)), np.zeros(1), np.zeros(2), examples=np.ones(1, int), incremental=True
)
UPDATE = WHOLE.after(Delta(2, (), WHOLE.seen[:0], WHOLE.vectors[:0], WHOLE.biases[:0], np.zeros(0, np.int64)))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def written(pace: SnapshotPace, size: int, windows: int, made: Generation = UPDATE) -> list[int]:
    """The windows, of so many, that get a snapshot of this size."""
    found = []
    for number in range(1, windows + 1):
        due = pace.due(number, made)
        pace.committed(size if due else None)
        if due:
            found.append(number)
    return found


def test_whole_generations_get_one_each_or_every_kth(clock: Clock) -> None:
    assert written(SnapshotPace(1, clock), 10**9, 5, WHOLE) == [1, 2, 3, 4, 5]
    assert written(SnapshotPace(2, clock), 10**9, 5, WHOLE) == [2, 4]


def test_updates_share_the_bytes_of_a_snapshot(clock: Clock) -> None:
    pace = SnapshotPace(1, clock)
    assert written(pace, 10, 3) == [1, 2, 3]
    pace.committed(5 * snapshot_pace._BYTES_A_WINDOW)
    assert written(pace, 5 * snapshot_pace._BYTES_A_WINDOW, 12) == [5, 10]


def test_no_window_of_long_ago_is_needed_for_a_start(clock: Clock) -> None:
    pace = SnapshotPace(1, clock)
    pace.committed(10**9)
    assert written(pace, 10**9, 3) == []
    clock.now += snapshot_pace._MOST_SECONDS
    assert written(pace, 10**9, 3) == [1]


def test_an_idle_stream_gets_a_snapshot_for_windows_without_one(clock: Clock) -> None:
    pace = SnapshotPace(1, clock)
    pace.committed(10**9)
    clock.now += 10 * snapshot_pace._IDLE_SECONDS
    assert not pace.overdue()
    pace.committed(None)
    assert not pace.overdue()
    clock.now += snapshot_pace._IDLE_SECONDS
    assert pace.overdue()
    pace.committed(10**9)
    assert not pace.overdue()
