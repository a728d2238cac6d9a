from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from stream_cgzsl.learners.numerics.threads import one_thread


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_small_work_has_one_thread_and_then_as_many_as_before() -> None:
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_threads_come_back_after_an_error() -> None:
    with pytest.raises(RuntimeError, match="cancelled"), one_thread():
        raise RuntimeError("cancelled")
    assert torch.get_num_threads() == 2


def test_large_work_keeps_its_threads() -> None:
    with one_thread(small=False):
        assert torch.get_num_threads() == 2
