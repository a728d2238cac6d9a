"""Snapshots of a learner's parts as one, and as bytes: safetensors, with JSON in its header. Nothing in it can run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from stream_cgzsl.learners.interface import Snapshot, Space

_META = "meta"


def together(learner: str, space: Space, parts: Mapping[str, Snapshot]) -> Snapshot:
    """The snapshots of a learner's parts as one. No name of a part contains a dot."""
    arrays = {f"{part}.{name}": array for part, snapshot in parts.items() for name, array in snapshot.arrays.items()}
    meta = {part: dict(snapshot.meta) for part, snapshot in parts.items()}
    return Snapshot(arrays, {"learner": learner, "space": asdict(space), **meta})


def apart(learner: str, space: Space, snapshot: Snapshot) -> dict[str, Snapshot]:
    """The parts again. Raises `ValueError` when they are of another learner or space."""
    meta = dict(snapshot.meta)
    found, where = meta.pop("learner", None), meta.pop("space", None)
    if found != learner or where != asdict(space):
        raise ValueError(
            f"the snapshot is of learner {found!r} in space {where}; this is {learner!r} in {asdict(space)}"
        )
    arrays: dict[str, dict[str, Any]] = {part: {} for part in meta}
    for name, array in snapshot.arrays.items():
        part, _, rest = name.partition(".")
        arrays.setdefault(part, {})[rest] = array
    return {part: Snapshot(arrays[part], meta[part]) for part in meta}


def to_bytes(snapshot: Snapshot) -> bytes:
    """Equal snapshots give equal bytes, whatever order their names were put in."""
    meta = json.dumps(snapshot.meta, sort_keys=True, separators=(",", ":"), allow_nan=False)
    arrays = {name: np.asarray(snapshot.arrays[name], order="C") for name in sorted(snapshot.arrays)}
    data: bytes = save(arrays, metadata={_META: meta})
    return data


def from_bytes(data: bytes) -> Snapshot:
    """Raises `ValueError` when the bytes are not a snapshot."""
    try:
        arrays = load(data)
        header: dict[str, Any] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return Snapshot(arrays, json.loads(header["__metadata__"][_META]))
    except (SafetensorError, KeyError, ValueError, RecursionError) as error:
        raise ValueError(f"these {len(data)} bytes are not a learner's snapshot: {error}") from error
