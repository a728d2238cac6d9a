"""Memory that training frees goes back to the system; memory that reading frees is kept for the next fetch."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")

PROGRAM = """
import resource
from contextlib import nullcontext
from pathlib import Path
from stream_cgzsl.runtime.malloc import return_large_blocks

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

with return_large_blocks():
    pass
with {context}:
    before = resident_mb()
    large, small = [], []
    for _ in range(20):
        large.append(b"x" * 10_000_000)
        small.append(b"x" * 100_000)  # stays, so that the large blocks leave holes
    assert resident_mb() - before > 150
    large.clear()
    print(resident_mb() - before)
"""


def megabytes_kept(context: str) -> float:
    """How much of 200 MB a new process keeps after it has freed them."""
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(context=context)], check=True, capture_output=True)
    return float(done.stdout)


def test_training_returns_large_blocks_when_it_frees_them() -> None:
    assert megabytes_kept("return_large_blocks()") < 30


def test_reading_keeps_the_blocks_it_frees() -> None:
    assert megabytes_kept("nullcontext()") > 150
