"""A lock between processes that is released when its holder ends, however it ends."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from pathlib import Path


class FileLock:
    """Held by at most one `FileLock` in one process per `name`. The lock file is next to `path`."""

    def __init__(self, path: Path, name: str) -> None:
        short = hashlib.sha256(name.encode()).hexdigest()[:16]
        self._path = path.with_name(f"{path.name}-{short}.lock")
        self._descriptor: int | None = None

    def acquire(self, timeout: float = 0.0) -> bool:
        """True once the lock is held. Waits at most `timeout` seconds for another holder to release it."""
        if self._descriptor is not None:
            return True
        deadline = time.monotonic() + timeout
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    os.close(descriptor)
                    return False
                time.sleep(min(0.1, left))
            else:
                self._descriptor = descriptor
                return True

    def release(self) -> None:
        """Keeps the file: if it were removed, two processes could lock two different files of that name."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def exists(self) -> bool:
        return self._path.exists()

    def remove(self) -> None:
        """Releases the lock and removes the file; only for names that nobody will lock again."""
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)
        self.release()
