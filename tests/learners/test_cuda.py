"""The same learners on a GPU: repeatable there, and close to what a CPU finds. Skipped where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from worlds import SPACE, World, stream

from stream_cgzsl.learners import LEARNERS, create
from stream_cgzsl.serving.generation import Generation

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

SOLVED = ("episodic", "closed-form", "ridge")
"""Learners whose result does not hang on how rounding errors grow through a trained network."""


def last_generation(name: str, device: str) -> Generation:
    learner = create(name, SPACE, device=device)
    return [learner.fit(window) for window in stream(World())][-1]


@pytest.mark.parametrize("name", LEARNERS)
def test_two_runs_give_the_same_bytes(name: str) -> None:
    assert last_generation(name, "cuda").digest == last_generation(name, "cuda").digest


@pytest.mark.parametrize("name", SOLVED)
def test_a_gpu_finds_what_a_cpu_finds(name: str) -> None:
    one, other = last_generation(name, "cuda"), last_generation(name, "cpu")
    np.testing.assert_allclose(one.vectors, other.vectors, atol=2e-3)
    np.testing.assert_allclose(one.biases, other.biases, atol=2e-3)
