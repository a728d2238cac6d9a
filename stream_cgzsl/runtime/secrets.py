"""Reads passwords from the environment or a file, and keeps them out of logs and messages."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from stream_cgzsl.errors import UsageError

MAX_SECRET_BYTES = 64 * 1024


class Secret(str):
    """A string whose `repr` is stars, so that a logged dictionary does not reveal it."""

    def __repr__(self) -> str:
        return "'***'"


def without_password(url: str) -> str:
    """A bus URL that is safe to print."""
    return re.sub(r"//([^/?#]*?):[^/?#]*@", r"//\1@", url, count=1)


def from_environment(variable: str, environment: Mapping[str, str] = os.environ) -> Secret | None:
    """The secret in `variable`, or in the file named by `<variable>_FILE`, without the newline at its end.

    None if neither is set. Raises `UsageError` if both are, or if the file does not contain one line.
    """
    text, file = environment.get(variable), environment.get(f"{variable}_FILE")
    if not file:
        return Secret(text) if text else None
    where = f"{variable}_FILE={file}"
    if text:
        raise UsageError(f"{where}: {variable} is set too; set only one of them")
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(MAX_SECRET_BYTES + 1)
        secret = data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise UsageError(f"{where}: the file is not UTF-8 text") from None  # the error contains the file's bytes
    except OSError as error:
        raise UsageError(f"{where}: cannot read the file ({error.strerror})") from error
    if not secret or len(data) > MAX_SECRET_BYTES or "\n" in secret:
        raise UsageError(f"{where}: the file must contain the secret on one line, and nothing else")
    return Secret(secret)
