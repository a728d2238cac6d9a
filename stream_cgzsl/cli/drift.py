"""`drift`: how answers and projections changed from generation to generation.

Per generation: answers, the fraction of `unknown`, quantiles of the best score and of its margin over the second, how
far projections moved since the previous generation (in radians), and which classes moved most. The last two need an
evaluator that was running.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from stream_cgzsl.cli.flags import STREAM, add, open_stream, positive

if TYPE_CHECKING:
    from rich.table import Table

    from stream_cgzsl.evaluation.drift import GenerationDrift

_FILE_WIDTH = 120
_SHOWN = (0.05, 0.5)  # problems show at the low end and in the middle; --json has more


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--last", type=positive, metavar="N", help="only the last N generations (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add(parser, STREAM)


def run(arguments: argparse.Namespace) -> None:
    from rich.console import Console

    from stream_cgzsl.evaluation.drift import drift

    with open_stream(arguments, ("predictions", "evaluations")) as (bus, topics):
        found = drift(bus, topics)[-(arguments.last or 0) :]
        if arguments.json:
            document = {"bus": bus.url, "prefix": topics.prefix, "generations": [one.document() for one in found]}
            print(json.dumps(document, indent=2))
        elif found:
            Console(width=None if sys.stdout.isatty() else _FILE_WIDTH).print(_table(found))
        else:
            print(f"{bus.url}: no generation of {topics.prefix!r} has answered or been evaluated yet")


def _table(found: list[GenerationDrift]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in (
        "generation",
        "answers",
        "unknown",
        *_columns("score"),
        *_columns("margin"),
        "moved\nmean",
        "moved\nmost",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("classes that moved most", overflow="fold")
    for one in found:
        table.add_row(
            str(one.generation),
            f"{one.answers:,}",
            "-" if one.unknown is None else f"{100 * one.unknown:.1f} %",
            *("-" if value is None else f"{value:.3g}" for value in (*one.scores.at(_SHOWN), *one.margins.at(_SHOWN))),
            *("-" if angle is None else f"{angle:.3f}" for angle in (one.projection_mean, one.projection_max)),
            Text(", ".join(class_id for class_id, _ in one.most_drifted)),
        )
    return table


def _columns(name: str) -> list[str]:
    return [f"{name}\n{100 * quantile:g} %" for quantile in _SHOWN]
