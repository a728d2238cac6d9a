"""`learn`: run the learner of a stream."""

from __future__ import annotations

import argparse

from stream_cgzsl.cli.flags import GENESIS, LEARNING, PAGES, STREAM, add, settings_from, topics_from


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("learn", help="run the learner", description=__doc__)
    add(parser, STREAM, GENESIS, LEARNING, PAGES)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    settings = settings_from(arguments)
    from stream_cgzsl.environment import prepare
    from stream_cgzsl.metrics import LearnerMetrics
    from stream_cgzsl.workers.learner import LearnerWorker
    from stream_cgzsl.workers.process import serve

    prepare(settings.threads)
    serve(settings, topics_from(settings), LearnerMetrics(), LearnerWorker)
