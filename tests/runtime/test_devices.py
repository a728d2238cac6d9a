"""Which device computes, and what is said about one that cannot."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from stream_cgzsl.errors import UsageError
from stream_cgzsl.runtime.devices import choose_device, choose_scoring_device


def test_a_scorer_uses_the_cpu_unless_a_gpu_is_asked_for() -> None:
    assert choose_scoring_device("auto") == choose_scoring_device("cpu") == "cpu"


def test_a_learner_uses_a_gpu_where_there_is_one() -> None:
    assert choose_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert choose_device("cpu") == "cpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
@pytest.mark.parametrize("choose", [choose_device, choose_scoring_device])
def test_a_missing_gpu_is_reported(choose: Callable[[str], str]) -> None:
    with pytest.raises(UsageError, match="--device cuda: there is no usable GPU; use cpu or auto"):
        choose("cuda")


@pytest.mark.parametrize("choose", [choose_device, choose_scoring_device])
def test_an_unknown_device_is_reported(choose: Callable[[str], str]) -> None:
    with pytest.raises(UsageError, match="there is no device 'abacus'; use cpu, cuda or auto"):
        choose("abacus")
