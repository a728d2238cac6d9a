"""A limit on the number of records per second."""

from __future__ import annotations

import time
from collections.abc import Callable

_TICK_SECONDS = 0.125
"""How early a record may be sent: one wait then serves many records."""


class Pace:
    """Call `due` for each record, and `wait` where that returns True; without a rate it never does.

    Unused time is not made up for later: after a pause there is no burst.
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
        self._next = 0.0  # when the next record may be sent
        self._early = 0.0  # how far the last record was ahead of its time

    def due(self) -> bool:
        """Counts one more record; True when the caller must wait before sending it."""
        if self._rate is None:
            return False
        now = self._clock()
        self._next = max(self._next, now)
        self._early = self._next - now
        self._next += 1 / self._rate
        return self._early >= _TICK_SECONDS

    def wait(self) -> None:
        """Sleeps until the last counted record may be sent."""
        self._sleep(self._early)
