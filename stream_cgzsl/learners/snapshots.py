"""A snapshot as bytes and back: safetensors, with the JSON part in its header. Nothing in it can run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from stream_cgzsl.learners.interface import Snapshot

_META = "meta"


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
