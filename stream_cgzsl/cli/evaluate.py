"""`evaluate`: run the evaluator of a stream."""

from __future__ import annotations

import argparse

from stream_cgzsl.cli.flags import EVALUATION, PAGES, STREAM, add, settings_from, topics_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, STREAM, EVALUATION, PAGES)


def run(arguments: argparse.Namespace) -> None:
    settings = settings_from(arguments)
    from stream_cgzsl.runtime.metrics import EvaluatorMetrics
    from stream_cgzsl.workers.evaluator import EvaluatorWorker
    from stream_cgzsl.workers.process import serve

    serve(settings, topics_from(settings), EvaluatorMetrics(), EvaluatorWorker)
