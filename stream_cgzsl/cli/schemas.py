"""`schemas export DIR`: write the JSON Schemas and the AsyncAPI document."""

from __future__ import annotations

import argparse
from pathlib import Path

from stream_cgzsl.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("export",))
    parser.add_argument("directory", type=Path, help="where to write; created if it does not exist")


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.schemas.export import write

    try:
        written = write(arguments.directory)
    except OSError as error:
        raise UsageError(f"cannot write schemas to {arguments.directory}: {error}") from error
    print(f"{len(written)} files in {arguments.directory}")
