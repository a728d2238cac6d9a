"""What is freed while training goes back to the system; what is freed while reading is kept for the next fetch."""

from __future__ import annotations

import platform
import resource
from pathlib import Path

import numpy as np
import pytest

from stream_cgzsl.memory import large_blocks_given_back

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="no glibc, nothing to set")


def resident_mb() -> float:
    """Of this process, as the system counts it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def left_by_arrays() -> float:
    """The megabytes that stay of forty arrays of ten megabytes, with something small that is kept after each."""
    before = resident_mb()
    arrays, small = [], []
    for _ in range(40):
        arrays.append(np.ones(10_000_000, np.uint8))
        small.append(np.ones(100_000, np.uint8))
    assert resident_mb() - before > 300
    arrays.clear()
    return resident_mb() - before


def test_arrays_of_a_training_leave_no_holes() -> None:
    with large_blocks_given_back():
        assert left_by_arrays() < 50


def test_blocks_of_reading_are_used_again() -> None:
    """Pages the system has to give anew are counted as faults: 2,441 for each block where none is kept."""
    with large_blocks_given_back():
        pass
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        _ = b"x" * 10_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 4 * 2441
