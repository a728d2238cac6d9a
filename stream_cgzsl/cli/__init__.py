"""The command line: one module per command. A command holds no logic that a library user would miss."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from stream_cgzsl.errors import CgzslError, UsageError
from stream_cgzsl.version import __version__

COMMANDS = (
    *("demo", "up", "learn", "score", "evaluate", "encode", "feed", "run", "study", "report"),
    *("boundary", "rollback"),
    *("watch", "drift", "topics", "check", "replay", "copy", "compact", "export", "dead_letters", "schemas", "broker"),
)

_EPILOG = """exit codes: 0 done; 1 error; 2 wrong usage; 3 the bus cannot be reached; 4 the bus refused; 5 a topic is
missing or misconfigured; 6 another learner took over; 7 records expired; 8 the ledger is broken; 9 more dead letters
than allowed; 10 replay: different; 11 replay: inputs differ; 12 replay: not verifiable; 130 interrupted"""


class _Parser(argparse.ArgumentParser):
    """Reports what is wrong in one line, as for every other error, and where to find the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(UsageError.exit_code, f"{self.prog}: {message}; see {self.prog} --help\n")


def add_commands(parser: argparse.ArgumentParser) -> None:
    """One command per module: its name, its docstring as help, its arguments and `run`."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = importlib.import_module(f"stream_cgzsl.cli.{name}")
        summary = str(module.__doc__).splitlines()[0].partition(": ")[2]
        command = commands.add_parser(name.replace("_", "-"), help=summary, description=module.__doc__)
        module.add_arguments(command)
        command.set_defaults(run=module.run)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. An expected error is one line on standard error and an exit code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # in small matrix products, threads cost more than they gain
    parser = _Parser(
        prog="stream-cgzsl",
        description="Continual zero-shot learning on a stream of events: describe a class, recognise it, learn it.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"stream-cgzsl {__version__}")
    add_commands(parser)
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter reports an error at exit
        return 1
