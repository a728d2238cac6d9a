"""`drift`: how answers and projections changed from generation to generation.

Per generation: answers, the share of `unknown`, quantiles of the best score and of its margin over the second, how far
projections moved since the generation before (in radians), and which classes moved most. For the last two an evaluator
must have been running.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import STREAM, add, positive, settings_from, topics_from

if TYPE_CHECKING:
    from rich.table import Table

    from stream_cgzsl.evaluation.drift import GenerationDrift

_FILE_WIDTH = 120
_SHOWN = (0.05, 0.5)  # trouble shows at the low end and in the middle; the document has more


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("drift", help="show how answers and projections changed", description=__doc__)
    parser.add_argument("--last", type=positive, metavar="N", help="only the last N generations (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    add(parser, STREAM)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from rich.console import Console

    from stream_cgzsl.evaluation.drift import drift

    settings = settings_from(arguments)
    topics = topics_from(settings)
    with connect(settings.bus) as bus:
        topics.require(bus, ("predictions", "evaluations"))
        found = drift(bus, topics)[-(arguments.last or 0) :]
        if arguments.json:
            document = {"bus": bus.url, "prefix": topics.prefix, "generations": [one.document() for one in found]}
            print(json.dumps(document, indent=2))
        elif found:
            Console(width=None if sys.stdout.isatty() else _FILE_WIDTH).print(_table(found))
        else:
            print(f"{bus.url}: no generation of {topics.prefix!r} has answered or was evaluated yet")


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
            *("-" if angle is None else f"{angle:.3f}" for angle in (one.movement_mean, one.movement_max)),
            Text(", ".join(class_id for class_id, _ in one.movers)),
        )
    return table


def _columns(name: str) -> list[str]:
    return [f"{name}\n{100 * share:g} %" for share in _SHOWN]
