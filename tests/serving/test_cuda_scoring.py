"""Torch and numpy give the same answers: the scoring formula is written once for each."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stream_cgzsl.serving.answers import classifier
from stream_cgzsl.serving.cuda import CudaClassifier
from stream_cgzsl.serving.generation import Generation

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"))]


def generation(metric: str, transform: str, centred: bool) -> Generation:
    random = np.random.default_rng(3)
    vectors = random.normal(size=(40, 24)).astype(np.float32)
    vectors[7] = vectors[3]  # a tie, which goes to the first
    biases = random.normal(size=40).astype(np.float32) / 10
    biases[7] = biases[3]
    centre = random.random(24, dtype=np.float32) / 8 if centred else np.zeros(24, np.float32)
    names = tuple(f"{n:02}" for n in range(40))
    return Generation(1, names, np.ones(40, bool), vectors, biases, centre, metric, transform)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("transform", ["none", "sqrt"])
@pytest.mark.parametrize("metric", ["cosine", "affine"])
def test_torch_answers_as_numpy_does(metric: str, transform: str, centred: bool, device: str) -> None:
    made = generation(metric, transform, centred)
    rows = np.random.default_rng(4).random((300, 24), dtype=np.float32)
    rows[5] = 0
    expected, found = made.classify(rows, 6), CudaClassifier(made, device)(rows, 6)
    np.testing.assert_allclose(found.scores, expected.scores, atol=2e-6)
    np.testing.assert_array_equal(found.indices[:, 0], expected.indices[:, 0])


def test_a_scorer_without_a_gpu_answers_as_the_generation_does() -> None:
    made = generation("affine", "sqrt", True)
    rows = np.ones((2, 24), np.float32)
    np.testing.assert_array_equal(classifier(made, "cpu")(rows, 2).indices, made.classify(rows, 2).indices)
