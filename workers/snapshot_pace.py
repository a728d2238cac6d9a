"""When a learner writes its snapshot. Generations do not depend on it: a start applies the windows since again.

A window that changed little must not cost a snapshot of everything, and a start must not cost many windows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from stream_cgzsl.serving.generation import Generation

_BYTES_A_WINDOW = 4_000_000
"""What an update may cost on average: a snapshot of 400 MB is written at every hundredth of them."""

_IDLE_SECONDS = 60.0
"""A stream that is quiet for this long gets its snapshot: the records since may expire before the next window."""

_MOST_SECONDS = 600.0
"""So that even in a stream that never rests, no window from longer ago is needed for a start."""


class SnapshotPace:
    """Windows whose number is a multiple of `every` may have a snapshot.

    Of these, one that makes a whole generation has one. Of updates, so many have one that it costs each a bounded
    number of bytes on average, but at least one in ten minutes.
    """

    def __init__(self, every: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = every
        self._clock = clock
        self._bytes = 0  # of the last snapshot
        self._windows = 0  # since then
        self._first = self._last = 0.0  # when the first and the last of these were committed

    def restored(self, windows: int) -> None:
        """The ledger has as many windows since its last snapshot. Where that was one, its size is not known."""
        self._bytes, self._windows = 0, windows
        self._first = self._last = self._clock()

    def due(self, number: int, generation: Generation) -> bool:
        """Whether window `number`, which makes this generation, needs a snapshot."""
        if number % self._every:
            return False
        old = self._windows > 0 and self._clock() - self._first >= _MOST_SECONDS
        return generation.delta is None or old or (self._windows + 1) * _BYTES_A_WINDOW >= self._bytes

    def committed(self, size: int | None) -> None:
        """A window is committed, with a snapshot of this size or without."""
        now = self._clock()
        if size is not None:
            self._bytes, self._windows = size, 0
            return
        if not self._windows:
            self._first = now
        self._windows, self._last = self._windows + 1, now

    def overdue(self) -> bool:
        """Whether an idle stream should get a window for its snapshot alone."""
        return self._every == 1 and self._windows > 0 and self._clock() - self._last >= _IDLE_SECONDS
