"""A file is there whole or as it was before."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_cgzsl.errors import UsageError
from stream_cgzsl.whole_file import write_whole


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_whole(path, "one")
    write_whole(path, b"two")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("two", [path])


def test_where_it_cannot_be_written_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*/none/a.json: No such file or directory; make room, or"):
        write_whole(tmp_path / "none" / "a.json", "one")


def test_what_stood_there_stays_when_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_whole(path, "one")
    (tmp_path / ".a.json.part").symlink_to("/dev/full")  # a disk without room
    with pytest.raises(UsageError, match="No space left on device"):
        write_whole(path, "two" * 10_000)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("one", [path])
