"""Loops of many small products run on one thread: handing each to several costs more than it saves.

On a machine with other work it costs far more, since each of thousands of products then waits for its slowest thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread(small: bool = True) -> Iterator[None]:
    """torch computes on one thread inside, if the products are `small`; as many as before afterwards."""
    before = torch.get_num_threads()
    if not small or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
