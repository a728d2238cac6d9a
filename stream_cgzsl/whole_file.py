"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from stream_cgzsl.errors import UsageError


def write_whole(path: Path, content: str | bytes) -> None:
    """Made beside its place, put on the disk and moved there; what stood there before stays until then.

    Raises `UsageError` where it cannot be written; nothing half-written is left behind.
    """
    data = content.encode() if isinstance(content, str) else content
    beside = path.with_name(f".{path.name}.part")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):  # the error that brought us here is the one to tell
            beside.unlink(missing_ok=True)
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}; make room, or choose another place"
        ) from error
