"""A lock between processes of one machine that also a stopped holder loses.

A dead holder is known at once, by a file lock that ended with it. A holder that is alive but silent (stopped,
swapped out) is known by its heartbeat, the time of the lease file, once that is older than the session timeout.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from pathlib import Path

from stream_cgzsl.bus.file_lock import FileLock
from stream_cgzsl.bus.interface import Lock


class Lease(Lock):
    def __init__(self, beside: Path, name: str, session_seconds: float) -> None:
        self._beside = beside
        self._name = name
        self._session = session_seconds
        self._me = uuid.uuid4().hex
        self._alive = FileLock(beside, f"{name}.{self._me}")
        self._guard = FileLock(beside, f"{name}.guard")
        self._file = beside.with_name(f"{beside.name}-{name.replace('/', '_')}.lease")
        self._ended = threading.Event()
        self._beating: threading.Thread | None = None

    def acquire(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while not self._try():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(0.2, left))
        return True

    def _try(self) -> bool:
        if self.held():
            return True
        if not self._guard.acquire(1.0):
            return False
        try:
            if not self._holder_gone():
                return False
            self._stop_beating()
            self._alive.acquire()
            self._file.write_text(self._me)
        finally:
            self._guard.release()
        self._ended = threading.Event()
        self._beating = threading.Thread(target=self._beat, args=(self._ended,), name="lease", daemon=True)
        self._beating.start()
        return True

    def _holder_gone(self) -> bool:
        try:
            holder, beat = self._file.read_text(), self._file.stat().st_mtime
        except FileNotFoundError:
            return True
        if not holder or time.time() - beat > self._session:
            return True
        alive = FileLock(self._beside, f"{self._name}.{holder}")
        if not alive.exists():
            return True
        if alive.acquire():
            alive.remove()
            return True
        return False

    def _beat(self, ended: threading.Event) -> None:
        """Says "still here" three times a session, as long as the lease is ours."""
        while not ended.wait(self._session / 3) and self.held():
            os.utime(self._file)

    def held(self) -> bool:
        try:
            return self._file.read_text() == self._me
        except FileNotFoundError:
            return False

    def _stop_beating(self) -> None:
        self._ended.set()
        if self._beating is not None:
            self._beating.join()
            self._beating = None

    def close(self) -> None:
        self._stop_beating()
        if self._guard.acquire(5.0):
            if self.held():
                self._file.write_text("")
            self._guard.release()
        self._alive.remove()
