"""What proves that two windows had the same inputs: one digest of everything that was accepted, in training order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from stream_cgzsl.windows.window import Array, Window


def digest_of(window: Window, hashes: Mapping[str, list[bytes]]) -> Future[str]:
    """The sha256 of a window, whose features have these hashes by class; found while the window is already trained on."""
    beside = ThreadPoolExecutor(1, "inputs-digest")
    digest = beside.submit(_digest, window, hashes)
    beside.shutdown(wait=False)
    return digest


def _digest(window: Window, hashes: Mapping[str, list[bytes]]) -> str:
    digest = hashlib.sha256()
    for class_id in window.retired:
        digest.update(b"retired\0" + class_id.encode() + b"\0")
    for description in window.described:
        digest.update(f"described\0{description.class_id}\0{description.name or ''}\0".encode())
        digest.update(_bytes(description.vector))
    for class_id, examples in window.features.items():
        digest.update(f"features\0{class_id}\0{examples.count}\0".encode())
        digest.update(b"".join(hashes[class_id]))
        digest.update(_bytes(examples.rows))
    return digest.hexdigest()


def _bytes(array: Array) -> memoryview:
    return np.ascontiguousarray(array, "<f4").data
