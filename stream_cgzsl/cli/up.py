"""`up`: run the learner and a scorer of a stream together, on one bus, until Ctrl-C."""

from __future__ import annotations

import argparse

from stream_cgzsl.bus import connect
from stream_cgzsl.cli.flags import CUTS, GENESIS, LEARNING, SERVING, STREAM, add, positive, settings_from, topics_from


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("up", help="run learner and scorer together", description=__doc__)
    parser.add_argument("--partitions", type=positive, default=4, help="of the topics that are created (default: 4)")
    add(parser, STREAM, GENESIS, LEARNING, CUTS, SERVING)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from stream_cgzsl.workers.process import start_logging, stop_on_signals
    from stream_cgzsl.workers.together import run_together

    settings = settings_from(arguments)
    with connect(settings.bus) as bus:
        bus.create(topics_from(settings).specs(arguments.partitions))
    start_logging(settings.log_level)
    return run_together(settings, stop_on_signals())
