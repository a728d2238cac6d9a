"""`learn`: run the learner of a stream."""

from __future__ import annotations

import argparse

from stream_cgzsl.cli.flags import CUTS, GENESIS, LEARNING, PAGES, STREAM, add, settings_from, topics_from


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("learn", help="run the learner", description=__doc__)
    add(parser, STREAM, GENESIS, LEARNING, CUTS, PAGES)
    parser.add_argument(
        "--rebuild", action="store_true", help="train all windows of the ledger again instead of its snapshot"
    )
    parser.add_argument(
        "--accept-loss", action="store_true", help="go on although records expired before they were learned"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    settings = settings_from(arguments)
    from functools import partial

    from stream_cgzsl.environment import prepare
    from stream_cgzsl.metrics import LearnerMetrics
    from stream_cgzsl.workers.learner import LearnerWorker
    from stream_cgzsl.workers.process import serve

    prepare(settings.threads)
    build = partial(LearnerWorker, rebuild=arguments.rebuild, accept_loss=arguments.accept_loss)
    serve(settings, topics_from(settings), LearnerMetrics(), build)
