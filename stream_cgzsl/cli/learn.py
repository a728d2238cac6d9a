"""`learn`: run the learner of a stream."""

from __future__ import annotations

import argparse

from stream_cgzsl.cli.flags import CUTS, DECODING, GENESIS, LEARNING, PAGES, STREAM, add, decoding_topics, settings_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, STREAM, DECODING, GENESIS, LEARNING, CUTS, PAGES)
    parser.add_argument(
        "--rebuild", action="store_true", help="train all windows of the ledger again instead of loading its snapshot"
    )
    parser.add_argument(
        "--accept-loss", action="store_true", help="continue although records expired before they were learned"
    )


def run(arguments: argparse.Namespace) -> None:
    settings = settings_from(arguments)
    from functools import partial

    from stream_cgzsl.runtime.environment import prepare_torch
    from stream_cgzsl.runtime.metrics import LearnerMetrics
    from stream_cgzsl.workers.learner import LearnerWorker
    from stream_cgzsl.workers.process import serve

    prepare_torch(settings.threads)
    build = partial(LearnerWorker, rebuild=arguments.rebuild, accept_loss=arguments.accept_loss)
    serve(settings, decoding_topics(settings), LearnerMetrics(), build)
