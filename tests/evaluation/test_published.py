"""Evaluations as records, with very many classes too."""

from __future__ import annotations

from stream_cgzsl.evaluation.published import encode_within_limit
from stream_cgzsl.schemas import MAX_BYTES, Evaluation, decode


def of(classes: int) -> Evaluation:
    shares = {f"class {n:07} with a name": n / classes for n in range(classes)}
    return Evaluation(
        generation=1, digest="0" * 64, samples=1, per_class=shares, best=shares, movement=shares, by_examples={"0": 0.5}
    )


def sent(evaluation: Evaluation) -> Evaluation:
    message = encode_within_limit(evaluation)
    assert len(message.value or b"") <= MAX_BYTES
    event = decode("evaluations", *message[:3])
    assert isinstance(event, Evaluation)
    return event


def test_thousands_of_classes_fit() -> None:
    evaluation = of(20_000)
    assert sent(evaluation) == evaluation


def test_with_more_classes_per_class_figures_are_left_out() -> None:
    for classes, gone in ((40_000, {"movement"}), (80_000, {"movement", "per_class"})):
        evaluation = of(classes)
        assert sent(evaluation) == evaluation.model_copy(update={field: {} for field in gone})
