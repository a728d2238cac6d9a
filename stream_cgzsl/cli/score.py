"""`score`: run a scorer of a stream."""

from __future__ import annotations

import argparse

from stream_cgzsl.cli.flags import DECODING, PAGES, SERVING, STREAM, add, decoding_topics, settings_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, STREAM, DECODING, SERVING, PAGES, ("device",))


def run(arguments: argparse.Namespace) -> None:
    settings = settings_from(arguments)
    from stream_cgzsl.runtime.metrics import ScorerMetrics
    from stream_cgzsl.workers.process import serve
    from stream_cgzsl.workers.scorer import ScorerWorker

    serve(settings, decoding_topics(settings), ScorerMetrics(), ScorerWorker)
