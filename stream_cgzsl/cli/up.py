"""`up`: run the learner, a scorer and the evaluator of a stream together, on one bus, until Ctrl-C.

With --port N their pages are at N, N+1 and N+2.
"""

from __future__ import annotations

import argparse

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import (
    CUTS,
    EVALUATION,
    GENESIS,
    LEARNING,
    PAGES,
    SERVING,
    STREAM,
    add,
    positive,
    settings_from,
    topics_from,
)


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("up", help="run learner, scorer and evaluator together", description=__doc__)
    parser.add_argument("--partitions", type=positive, default=4, help="of the topics that are created (default: 4)")
    add(parser, STREAM, GENESIS, LEARNING, CUTS, SERVING, EVALUATION, PAGES)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from stream_cgzsl.workers.process import start_logging, stop_on_signals
    from stream_cgzsl.workers.together import run_together

    settings = settings_from(arguments)
    with connect(settings.bus) as bus:
        bus.create(topics_from(settings).specs(arguments.partitions))
    start_logging(settings.log_level)
    return run_together(settings, stop_on_signals())
