"""Accuracy by how many examples a class has had: more examples should never mean less accuracy."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from statistics import fmean

from stream_cgzsl.schemas import EXAMPLE_BUCKETS
from stream_cgzsl.serving.generation import Generation

_BUCKET_ENDS = (0, 2, 5, 20)


def bucket_of(examples: int) -> str:
    return EXAMPLE_BUCKETS[bisect_left(_BUCKET_ENDS, examples)]


def accuracy_by_examples(generation: Generation, per_class: Mapping[str, float]) -> dict[str, float]:
    """The mean of these accuracies by bucket. Empty where the generation does not know the numbers of examples."""
    if generation.examples is None:
        return {}
    groups: dict[str, list[float]] = {}
    for class_id, examples in zip(generation.class_ids, generation.examples.tolist(), strict=True):
        if class_id in per_class:
            groups.setdefault(bucket_of(examples), []).append(per_class[class_id])
    return {bucket: fmean(groups[bucket]) for bucket in EXAMPLE_BUCKETS if bucket in groups}
