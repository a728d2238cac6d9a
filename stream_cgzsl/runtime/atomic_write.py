"""Writing files atomically: a file is complete or not there, whatever happens while it is written."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from stream_cgzsl.errors import UsageError


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes a temporary file next to `path`, syncs it to disk and renames it. The old file stays until then.

    Raises `UsageError` where it cannot be written; nothing half-written is left behind.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):  # the first error is the one to report
            temporary.unlink(missing_ok=True)
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}; free some space, or choose another place"
        ) from error
