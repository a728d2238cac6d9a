"""When glibc gives freed memory back to the system. With another allocator, nothing here does anything."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_MEGABYTE = 2**20


@contextmanager
def large_blocks_given_back() -> Iterator[None]:
    """Within, blocks of 4 MB and more go back when they are freed: training would leave gigabytes of holes between arrays.

    Outside they are kept for the next: page by page anew for every fetch, reading would take twice as long. What was
    kept goes back on the way in, and what training left in small pieces on the way out.
    """
    _give_back_from(4)
    try:
        yield
    finally:
        _give_back_from(32)


def _give_back_from(megabytes: int) -> None:
    """What is free now, and from now on blocks of this size when they are freed."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim"):
        libc.mallopt(_M_MMAP_THRESHOLD, megabytes * _MEGABYTE)
        libc.mallopt(_M_TRIM_THRESHOLD, 2 * megabytes * _MEGABYTE)  # as glibc does by itself, as long as nothing is set
        libc.malloc_trim(ctypes.c_size_t(0))
