"""How long tests wait for what must come, and the waiting."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0


def until(condition: Callable[[], bool], what: str = "it", seconds: float = PATIENCE_SECONDS) -> None:
    """Return as soon as this is true; fail when it is not within that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within {seconds:g} s"
        time.sleep(0.02)
