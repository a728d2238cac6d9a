"""Data sets: one layout a file, `load` is the way in."""

from __future__ import annotations

from stream_cgzsl.benchmark.datasets.dataset import Dataset, split_rows
from stream_cgzsl.benchmark.datasets.finding import data_folder, load

__all__ = ["Dataset", "data_folder", "load", "split_rows"]
