"""The same answers wherever the matrix product is computed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stream_cgzsl.classifying import _CudaClassifier, classifier, serving_device
from stream_cgzsl.errors import UsageError
from stream_cgzsl.generation import Generation

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
    expected, found = made.classify(rows, 6), _CudaClassifier(made, device)(rows, 6)
    np.testing.assert_allclose(found.scores, expected.scores, atol=2e-6)
    np.testing.assert_array_equal(found.indices[:, 0], expected.indices[:, 0])


def test_the_processor_is_used_unless_a_gpu_is_asked_for() -> None:
    made = generation("affine", "sqrt", True)
    assert serving_device("auto") == serving_device("cpu") == "cpu"
    rows = np.ones((2, 24), np.float32)
    np.testing.assert_array_equal(classifier(made, "cpu")(rows, 2).indices, made.classify(rows, 2).indices)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="no usable GPU"):
        serving_device("cuda")
