from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stream_cgzsl.serving import file
from stream_cgzsl.serving.cuda import CudaClassifier
from stream_cgzsl.serving.encoder import Layer
from stream_cgzsl.serving.generation import Generation

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 6)).astype(np.float32)  # more rows than are scored at once


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


LAYERS = (Layer(numbers(5, 6), numbers(5), "relu"), Layer(numbers(3, 5), numbers(3)))


def generation(encoder: tuple[Layer, ...] | None = LAYERS, transform: str = "none") -> Generation:
    latent = 6 if encoder is None else 3
    ids, seen = ("a", "b", "c", "d"), np.array([True, True, False, False])
    vectors, biases, centre = numbers(4, latent), numbers(4), np.zeros(latent, np.float32)
    return Generation(1, ids, seen, vectors, biases, centre, "linear", transform, encoder=encoder)


def slowly(made: Generation, x: np.ndarray) -> np.ndarray:
    h = np.sqrt(np.maximum(x, 0)) if made.transform == "sqrt" else x
    for layer in made.encoder or ():
        h = np.array([[row @ w + b for w, b in zip(layer.weights, layer.bias, strict=True)] for row in h])
        h = np.maximum(h, 0) if layer.activation == "relu" else h
    return h @ made.vectors.T + made.biases


@pytest.mark.parametrize("encoder", [None, LAYERS])
@pytest.mark.parametrize("transform", ["none", "sqrt"])
def test_scores_are_linear_in_what_the_encoder_makes(encoder: tuple[Layer, ...] | None, transform: str) -> None:
    made = generation(encoder, transform)
    np.testing.assert_allclose(made.scores(X), slowly(made, X), rtol=1e-4, atol=1e-5)
    on_torch = CudaClassifier(made, "cpu")(X, 4)
    np.testing.assert_array_equal(on_torch.indices, made.classify(X, 4).indices)
    np.testing.assert_allclose(on_torch.scores, made.classify(X, 4).scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [3e38, -3e38])
def test_scores_of_huge_numbers_are_finite(value: float) -> None:
    assert np.isfinite(generation().scores(np.full((1, 6), value))).all()


def test_every_part_of_the_encoder_is_in_the_digest() -> None:
    made = generation()
    first, second = LAYERS
    for changed in (
        (Layer(first.weights * 1.001, first.bias, "relu"), second),
        (first, Layer(second.weights, second.bias + 0.001)),
        (first, Layer(second.weights, second.bias, "relu")),
    ):
        assert replace(made, encoder=changed).digest != made.digest


def test_an_encoder_survives_its_file(tmp_path: Path) -> None:
    made = generation()
    file.write(made, tmp_path / "made")
    again = file.read(tmp_path / "made")
    assert again.digest == made.digest
    np.testing.assert_array_equal(again.scores(X), made.scores(X))


@pytest.mark.parametrize("encoder", [LAYERS[:1], LAYERS[::-1], (Layer(numbers(3, 6), numbers(3), "cube"),), ()])
def test_layers_that_do_not_fit_are_refused(encoder: tuple[Layer, ...]) -> None:
    with pytest.raises(ValueError, match="the encoder"):
        replace(generation(), encoder=encoder)


def test_only_linear_scores_have_an_encoder() -> None:
    with pytest.raises(ValueError, match="only the metric `linear`"):
        replace(generation(), metric="cosine")
