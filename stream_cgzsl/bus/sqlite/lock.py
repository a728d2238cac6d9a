"""A lock between processes on one machine that a holder loses when it dies, and also when it stops responding.

A holder that died is detected at once, because its file lock is released. One that is alive but stopped or swapped out
is detected by its heartbeat, the modification time of the lease file, once that is older than the session timeout.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from pathlib import Path

from stream_cgzsl.bus.interface import Lock
from stream_cgzsl.runtime.file_lock import FileLock


class SqliteLock(Lock):
    """The lease file, next to the bus file, contains the id of the holder."""

    def __init__(self, bus_file: Path, name: str, session_seconds: float) -> None:
        self._bus_file = bus_file
        self._name = name
        self._session = session_seconds
        self._id = uuid.uuid4().hex
        self._alive = FileLock(bus_file, f"{name}.{self._id}")
        self._guard = FileLock(bus_file, f"{name}.guard")
        self._lease = bus_file.with_name(f"{bus_file.name}-{name.replace('/', '_')}.lease")
        self._released = threading.Event()
        self._heartbeat: threading.Thread | None = None

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
            self._stop_heartbeat()
            self._alive.acquire()
            self._lease.write_text(self._id)
        finally:
            self._guard.release()
        self._released = threading.Event()
        self._heartbeat = threading.Thread(target=self._beat, args=(self._released,), name="lock", daemon=True)
        self._heartbeat.start()
        return True

    def _holder_gone(self) -> bool:
        try:
            holder, beat = self._lease.read_text(), self._lease.stat().st_mtime
        except FileNotFoundError:
            return True
        if not holder or time.time() - beat > self._session:
            return True
        alive = FileLock(self._bus_file, f"{self._name}.{holder}")
        if not alive.exists():
            return True
        if alive.acquire():
            alive.remove()
            return True
        return False

    def _beat(self, released: threading.Event) -> None:
        """Renews the lease three times per session, as long as it is ours."""
        while not released.wait(self._session / 3) and self.held():
            os.utime(self._lease)

    def held(self) -> bool:
        try:
            return self._lease.read_text() == self._id
        except FileNotFoundError:
            return False

    def _stop_heartbeat(self) -> None:
        self._released.set()
        if self._heartbeat is not None:
            self._heartbeat.join()
            self._heartbeat = None

    def close(self) -> None:
        self._stop_heartbeat()
        if self._guard.acquire(5.0):
            if self.held():
                self._lease.write_text("")
            self._guard.release()
        self._alive.remove()
