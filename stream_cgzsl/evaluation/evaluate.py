"""Testing one generation: everything its `Evaluation` says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stream_cgzsl.evaluation.answers import accuracies, ask, in_batches
from stream_cgzsl.evaluation.curve import seen_unseen_curve
from stream_cgzsl.evaluation.forgetting import Shares, best_since_learned, forgetting
from stream_cgzsl.evaluation.movement import movement
from stream_cgzsl.generation import Array, Generation
from stream_cgzsl.schemas import Evaluation


def evaluate(
    generation: Generation,
    before: Generation | None,
    rows: Mapping[str, Sequence[Array]],
    best: Shares,
    alive: Callable[[], None] = lambda: None,
) -> Evaluation:
    """`before` is the generation before, where it can be had, `best` that of the evaluation before.

    Rows of classes the generation does not know are not asked about; one that cannot tell its classes apart is asked
    nothing at all. `alive` is called often and may raise to stop.
    """
    asked = in_batches(generation.class_ids, rows) if generation.servable else ()
    answers = ask(generation, asked, alive)
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
        movement=movement(before, generation),
    )
