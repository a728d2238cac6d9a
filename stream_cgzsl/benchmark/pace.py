"""So many records a second, and no more."""

from __future__ import annotations

import time
from collections.abc import Callable

_TICK_SECONDS = 0.1


class Pace:
    """Tells when to wait: `due` for each record, `wait` when it says so. Without a rate it never does."""

    def __init__(
        self,
        rate: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._started: float | None = None
        self._passed = 0

    def due(self) -> bool:
        """Counts one more record; True when it comes too early by a tick or more."""
        if self._rate is None:
            return False
        if self._started is None:
            self._started = self._clock()
        self._passed += 1
        return self._ahead() >= _TICK_SECONDS

    def wait(self) -> None:
        """Sleeps until the records counted so far are no longer too many."""
        ahead = self._ahead()
        if ahead > 0:
            self._sleep(ahead)

    def _ahead(self) -> float:
        assert self._rate is not None and self._started is not None
        return self._passed / self._rate - (self._clock() - self._started)
