"""Data sets: one module per file layout; `load` reads any of them."""

from __future__ import annotations

from stream_cgzsl.benchmark.datasets.dataset import Dataset, split_rows
from stream_cgzsl.benchmark.datasets.finding import data_folder, load

__all__ = ["Dataset", "data_folder", "load", "split_rows"]
