"""A file is replaced completely, or stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_cgzsl.errors import UsageError
from stream_cgzsl.runtime.atomic_write import write_atomically


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, "one")
    write_atomically(path, b"two")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("two", [path])


def test_a_file_that_cannot_be_written_is_reported_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"cannot write .*/none/a.json: No such file or directory; free some space, or"
    ):
        write_atomically(tmp_path / "none" / "a.json", "one")


def test_the_old_file_stays_when_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, "one")
    (tmp_path / ".a.json.part").symlink_to("/dev/full")  # a full disk
    with pytest.raises(UsageError, match="No space left on device"):
        write_atomically(path, "two" * 10_000)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("one", [path])
