"""Testing one generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stream_cgzsl.evaluation.answers import accuracies, classify, in_batches
from stream_cgzsl.evaluation.curve import seen_unseen_curve
from stream_cgzsl.evaluation.examples import accuracy_by_examples
from stream_cgzsl.evaluation.forgetting import ClassAccuracies, best_since_learned, forgetting
from stream_cgzsl.evaluation.projection_drift import projection_drift
from stream_cgzsl.schemas import Array, Evaluation
from stream_cgzsl.serving.generation import Generation


def evaluate(
    generation: Generation,
    before: Generation | None,
    rows: Mapping[str, Sequence[Array]],
    best: ClassAccuracies,
    alive: Callable[[], None] = lambda: None,
) -> Evaluation:
    """`before` is the previous generation, if it is still there; `best` is that of the previous evaluation.

    Rows of classes that the generation does not know are ignored, and all rows if it is not servable. `alive` is called
    often and may raise to stop.
    """
    batches = in_batches(generation.class_ids, rows) if generation.servable else ()
    answers = classify(generation, batches, alive)
    found = accuracies(generation, answers)
    learned = {class_id for class_id, seen in zip(generation.class_ids, generation.seen, strict=True) if seen}
    curve = seen_unseen_curve(answers, generation.seen)
    return Evaluation(
        generation=generation.number,
        digest=generation.digest,
        samples=len(answers.truth),
        seen=found.seen,
        unseen=found.unseen,
        harmonic=found.harmonic,
        forgetting=forgetting(best, learned, found.per_class),
        area=None if curve is None else curve.area,
        per_class=dict(found.per_class),
        best=best_since_learned(best, learned, found.per_class),
        movement=projection_drift(before, generation),
        by_examples=accuracy_by_examples(generation, found.per_class),
    )
