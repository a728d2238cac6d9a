"""So many records a second, and no more."""

from __future__ import annotations

import time
from collections.abc import Callable

_TICK_SECONDS = 0.125
"""Records may come so much too early, so that not each of them is waited for."""


class Pace:
    """Tells when to wait: `due` for each record, then `wait` when that says so. Without a rate it never does.

    Time that passed unused is not made up for later.
    """

    def __init__(
        self,
        rate: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0  # when the next record may go
        self._early = 0.0  # by how much the last one asked about came before its time

    def due(self) -> bool:
        """Counts one more record; True when it must be waited for."""
        if self._rate is None:
            return False
        now = self._clock()
        self._next = max(self._next, now)
        self._early = self._next - now
        self._next += 1 / self._rate
        return self._early >= _TICK_SECONDS

    def wait(self) -> None:
        """Sleeps until the time of the last record."""
        self._sleep(self._early)
