"""placeholder"""

from __future__ import annotations
from pathlib import Path
from stream_cgzsl.benchmark.datasets.dataset import Dataset


def is_plain(folder: Path) -> bool:
    return False


def load_plain(folder: Path) -> Dataset:
    raise NotImplementedError
