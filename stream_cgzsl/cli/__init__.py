"""What people type. One command a file; a command holds no logic that a library user would miss."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from stream_cgzsl import __version__
from stream_cgzsl.errors import CgzslError, UsageError

COMMANDS = (
    *("demo", "up", "learn", "score", "evaluate", "feed", "run", "study", "report"),
    *("boundary", "rollback"),
    *("watch", "drift", "topics", "check", "replay", "copy", "export", "dead_letters", "schemas", "broker"),
)

_EPILOG = """exit codes: 0 done; 1 error; 2 wrong usage; 3 the bus is away; 4 the bus refused; 5 a topic is missing or
kept wrongly; 6 another learner took over; 7 records expired; 8 the ledger is broken;
9 more dead letters than allowed; 10 replay: different; 11 replay: inputs differ; 12 replay: not verifiable; 130 interrupted"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as every other error is told; the usage is a flag away."""

    def error(self, message: str) -> NoReturn:
        self.exit(UsageError.exit_code, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; every error meant for a person is one line on standard error and an exit code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products: threads that wait for each other cost more
    parser = _Parser(
        prog="stream-cgzsl",
        description="Learns classes from a stream of events: described, recognised, learned, never forgotten.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"stream-cgzsl {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"stream_cgzsl.cli.{name}").register(commands)
    arguments = parser.parse_args(argv)
    try:
        return int(arguments.run(arguments) or 0)
    except CgzslError as error:
        print(f"stream-cgzsl: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stream-cgzsl: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at exit
        return 1
