"""`up`: run the learner, a scorer and the evaluator of a stream until Ctrl-C.

With --port N their pages are at N, N+1 and N+2.
"""

from __future__ import annotations

import argparse

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import (
    CUTS,
    DECODING,
    EVALUATION,
    GENESIS,
    LEARNING,
    PAGES,
    SERVING,
    STREAM,
    add,
    decoding_topics,
    positive,
    settings_from,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--partitions", type=positive, default=4, help="partitions of topics that are created (default: 4)"
    )
    add(parser, STREAM, DECODING, GENESIS, LEARNING, CUTS, SERVING, EVALUATION, PAGES)


def run(arguments: argparse.Namespace) -> int:
    from stream_cgzsl.workers.process import start_logging, stop_on_signals
    from stream_cgzsl.workers.supervisor import run_together

    settings = settings_from(arguments)
    with connect(settings.bus) as bus:
        bus.create(decoding_topics(settings).specs(arguments.partitions))
    start_logging(settings.log_level)
    return run_together(settings, stop_on_signals())
