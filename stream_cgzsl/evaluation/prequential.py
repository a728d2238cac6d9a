"""Test, then train: how the previous generation classifies a window's features before they are learned."""

from __future__ import annotations

from itertools import islice

from stream_cgzsl.evaluation.answers import accuracies, classify, in_batches
from stream_cgzsl.schemas import Prequential
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.bottom_k import share
from stream_cgzsl.windows.window import Window

ROWS = 10_000
"""The most features to classify: enough for an accuracy, and cheap compared with reading a large window."""


def prequential(before: Generation | None, window: Window) -> Prequential | None:
    """Accuracies of `before` on the window's kept features; None if it could not classify any of them.

    The first rows of each class in training order, equally many per class as far as it has them. Classes that `before`
    does not know are left out, and so are classes that the window retires and describes again.
    """
    if before is None or not before.servable:
        return None
    known = set(before.class_ids) - set(window.retired)
    given = {c: examples.rows for c, examples in window.features.items() if c in known and len(examples.rows)}
    if not given:
        return None
    given = dict(islice(given.items(), ROWS))
    most = share([len(rows) for rows in given.values()], ROWS)
    answers = classify(before, in_batches(before.class_ids, {c: rows[:most] for c, rows in given.items()}))
    found = accuracies(before, answers)
    return Prequential(rows=len(answers.truth), seen=found.seen, unseen=found.unseen)
