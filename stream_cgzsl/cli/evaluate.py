"""`evaluate`: run the evaluator of a stream."""

from __future__ import annotations

import argparse

from stream_cgzsl.cli.flags import DECODING, EVALUATION, PAGES, STREAM, add, decoding_topics, settings_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, STREAM, DECODING, EVALUATION, PAGES)


def run(arguments: argparse.Namespace) -> None:
    settings = settings_from(arguments)
    from stream_cgzsl.runtime.metrics import EvaluatorMetrics
    from stream_cgzsl.workers.evaluator import EvaluatorWorker
    from stream_cgzsl.workers.process import serve

    serve(settings, decoding_topics(settings), EvaluatorMetrics(), EvaluatorWorker)
