"""What a learner is given: one window, in training order, independent of how it was delivered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from stream_cgzsl.schemas import Array


@dataclass(frozen=True)
class Description:
    """A class as its attribute vector describes it."""

    class_id: str
    vector: Array  # [attributes] float32
    name: str | None = None


@dataclass(frozen=True)
class Examples:
    """The features of one class in one window: `count` arrived, `rows` of them were kept, ordered by their hash."""

    count: int
    rows: Array  # [kept, features] float32


@dataclass(frozen=True)
class Window:
    """Window `number`: classes described (sorted by id), classes retired (sorted), features by class (sorted by id).

    A class retired and described again inside one window is in both: it is retired first, then starts fresh.
    """

    number: int
    described: tuple[Description, ...] = ()
    retired: tuple[str, ...] = ()
    features: Mapping[str, Examples] = field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls, number: int, attributes: Mapping[str, Array], features: Mapping[str, Array], retired: tuple[str, ...] = ()
    ) -> Window:
        """A window made from arrays, for library users: all rows are kept, in the order given."""
        return cls(
            number,
            tuple(Description(c, np.asarray(attributes[c], np.float32)) for c in sorted(attributes)),
            tuple(sorted(retired)),
            {c: Examples(len(features[c]), np.asarray(features[c], np.float32)) for c in sorted(features)},
        )


def start_digest(window: Window, hashes: Mapping[str, list[bytes]]) -> Future[str]:
    """What proves that two windows had the same inputs: the sha256 of a window whose features have these hashes.

    Computed in a thread, because hashing a large window takes seconds and training need not wait for it.
    """
    executor = ThreadPoolExecutor(1, "inputs-digest")
    digest = executor.submit(_digest, window, hashes)
    executor.shutdown(wait=False)
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
