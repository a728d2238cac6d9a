"""A lock between processes: held by one, and free again however its holder ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_SECONDS

from stream_cgzsl.runtime.file_lock import FileLock

HOLDER = """
import sys, time
from pathlib import Path
from stream_cgzsl.runtime.file_lock import FileLock
lock = FileLock(Path(sys.argv[1]), "name")
print(lock.acquire(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bus.db"


def test_a_lock_is_held_by_one_until_it_is_released(path: Path) -> None:
    first, second = FileLock(path, "name"), FileLock(path, "name")
    assert first.acquire() and first.acquire()
    assert not second.acquire()
    first.release()
    assert second.acquire()
    assert not first.acquire()
    second.release()


def test_another_name_is_another_lock(path: Path) -> None:
    first, second = FileLock(path, "name"), FileLock(path, "other")
    assert first.acquire() and second.acquire()
    first.release()
    second.release()


def test_a_removed_lock_leaves_no_file(path: Path) -> None:
    lock = FileLock(path, "name")
    assert lock.acquire() and lock.exists()
    lock.remove()
    assert (lock.exists(), list(path.parent.iterdir())) == (False, [])


def test_the_lock_of_a_killed_process_is_free(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        lock = FileLock(path, "name")
        assert not lock.acquire(timeout=0.2)
        holder.kill()
        assert lock.acquire(PATIENCE_SECONDS)
        lock.release()
