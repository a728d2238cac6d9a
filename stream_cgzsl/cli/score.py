"""`score`: run a scorer of a stream."""

from __future__ import annotations

import argparse

from stream_cgzsl.cli.flags import PAGES, SERVING, STREAM, add, settings_from, topics_from


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("score", help="run a scorer", description=__doc__)
    add(parser, STREAM, SERVING, PAGES, ("device",))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    settings = settings_from(arguments)
    from stream_cgzsl.metrics import ScorerMetrics
    from stream_cgzsl.workers.process import serve
    from stream_cgzsl.workers.scorer import ScorerWorker

    serve(settings, topics_from(settings), ScorerMetrics(), ScorerWorker)
