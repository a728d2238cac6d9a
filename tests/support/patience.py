"""Waiting for something that must happen, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0


def until(condition: Callable[[], bool], what: str = "it", seconds: float = PATIENCE_SECONDS) -> None:
    """Returns as soon as the condition is true; fails if that takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:g} s"
        time.sleep(0.02)
