"""Passwords: where they come from, and that they are never shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from stream_cgzsl.errors import UsageError

MAX_SECRET_BYTES = 64 * 1024


class Secret(str):
    """Text that shows itself only to those who use it: any log of a dictionary that holds it prints stars."""

    def __repr__(self) -> str:
        return "'***'"


def without_password(url: str) -> str:
    """A bus URL as it may be shown."""
    return re.sub(r"//([^/?#]*?):[^/?#]*@", r"//\1@", url, count=1)


def from_environment(variable: str, environment: Mapping[str, str] = os.environ) -> Secret | None:
    """The secret in `variable`, or in the file that `<variable>_FILE` names, without the newline at its end.

    None where neither is set. Raises `UsageError` for both, and for a file that holds none.
    """
    text, file = environment.get(variable), environment.get(f"{variable}_FILE")
    if not file:
        return Secret(text) if text else None
    where = f"{variable}_FILE={file}"
    if text:
        raise UsageError(f"{where}: {variable} is set too; set one of them")
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(MAX_SECRET_BYTES + 1)
        secret = data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise UsageError(f"{where}: the file is not UTF-8 text") from None  # the error holds the file's bytes
    except OSError as error:
        raise UsageError(f"{where}: cannot read the file ({error.strerror})") from error
    if not secret or len(data) > MAX_SECRET_BYTES or "\n" in secret:
        raise UsageError(f"{where}: the file must hold the secret in one line, and nothing else")
    return Secret(secret)
