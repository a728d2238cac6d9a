"""When glibc returns freed memory to the system. With another allocator nothing here has an effect."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_MEGABYTE = 2**20


@contextmanager
def return_large_blocks() -> Iterator[None]:
    """Within, blocks of 4 MB and more are returned as soon as they are freed: training would otherwise leave gigabytes
    of holes between arrays.

    Outside, they are kept for reuse: reading takes twice as long when every fetch gets new pages. What was kept is
    returned on the way in, and what training left in small pieces on the way out.
    """
    _return_from(4)
    try:
        yield
    finally:
        _return_from(32)


def _return_from(megabytes: int) -> None:
    """Returns what is free now, and from now on blocks of this size when they are freed."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim"):
        libc.mallopt(_M_MMAP_THRESHOLD, megabytes * _MEGABYTE)
        libc.mallopt(_M_TRIM_THRESHOLD, 2 * megabytes * _MEGABYTE)  # glibc's own ratio
        libc.malloc_trim(ctypes.c_size_t(0))
