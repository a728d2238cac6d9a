"""The scorer for GPUs leaves no tensor on the processor: found without a GPU, by tensors without values."""

from __future__ import annotations

import numpy as np
import pytest
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from stream_cgzsl.serving.cuda import CudaClassifier
from stream_cgzsl.serving.generation import Generation


def zeros_of(tensor: Tensor) -> object:
    """In place of values. They come back from the GPU first, as `numpy` demands."""
    assert tensor.device.type == "cpu"
    return np.zeros(tuple(tensor.shape), np.int64 if not tensor.dtype.is_floating_point else np.float32)


@pytest.mark.parametrize("transform", ["none", "sqrt"])
def test_every_tensor_of_the_scorer_is_on_the_gpu(transform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeTensor, "numpy", zeros_of, raising=False)
    generation = Generation(
        number=1,
        class_ids=("a", "b", "c"),
        seen=np.ones(3, bool),
        vectors=np.ones((3, 16), np.float32),
        biases=np.zeros(3, np.float32),
        centre=np.zeros(16, np.float32),
        transform=transform,
    )
    with FakeTensorMode():
        indices, values = CudaClassifier(generation, "cuda")(np.ones((5, 16), np.float32), 2)
    assert (indices.shape, values.shape) == ((5, 2), (5, 2))
