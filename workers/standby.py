"""Waiting for one's turn: of the workers that hold a lock while they work, one is at work and the others stand by."""

from __future__ import annotations

import threading
from collections.abc import Callable

from stream_cgzsl.bus import Lock

_JOIN_SECONDS = 1.0


def wait_for_turn(lock: Lock, stop: threading.Event, waiting: Callable[[], None]) -> bool:
    """True once the lock is held, False when `stop` is set before. `waiting` is called once if it must be waited for."""
    if lock.acquire(_JOIN_SECONDS):
        return True
    waiting()
    while not stop.is_set():
        if lock.acquire(1.0):
            return True
    return False
