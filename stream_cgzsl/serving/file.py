"""A generation in a file, for classifying without a bus: safetensors with a JSON header. Loading it runs no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from stream_cgzsl.errors import UsageError
from stream_cgzsl.runtime.atomic_write import write_atomically
from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.generation import Generation

_FORMAT = "cgzsl.generation.v1"
_ARRAYS = ("vectors", "biases", "centre", "seen")
MAX_FILE_BYTES = 4 * 1024**3
"""The largest file that is read: half a million classes of 2048 numbers."""


def write(generation: Generation, path: Path) -> None:
    """Writes the file atomically. Raises `UsageError`."""
    meta = {**meta_of(generation), "digest": generation.digest}
    write_atomically(path, save(arrays_of(generation), metadata={_FORMAT: json.dumps(meta, sort_keys=True)}))


def read(path: Path) -> Generation:
    """The generation in a file, checked against its digest. Raises `UsageError` for anything else than such a file."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"it is larger than {MAX_FILE_BYTES:,} bytes")
        with safe_open(path, framework="numpy") as file:
            meta = json.loads((file.metadata() or {})[_FORMAT])
            names = [*_ARRAYS, *({"examples"} & set(file.keys()))]
            generation = assembled(meta, {name: file.get_tensor(name) for name in names})
        whole = generation.digest == meta["digest"]
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{path} is not an exported generation ({error}); make one with: stream-cgzsl export"
        ) from error
    if not whole:
        raise UsageError(f"{path} is damaged: its content does not have the digest it names; export it again")
    return generation


def meta_of(generation: Generation) -> dict[str, Any]:
    """All of a generation that is not an array, JSON-ready."""
    return {
        "number": generation.number,
        "class_ids": generation.class_ids,
        "metric": generation.metric,
        "transform": generation.transform,
        "servable": generation.servable,
        "calibration": dict(generation.calibration),
        "incremental": generation.incremental,
    }


def arrays_of(generation: Generation) -> dict[str, Array]:
    arrays = {
        "vectors": generation.vectors,
        "biases": generation.biases,
        "centre": generation.centre,
        "seen": generation.seen.astype(np.uint8),
    }
    return arrays if generation.examples is None else {**arrays, "examples": generation.examples}


def assembled(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> Generation:
    """From what `meta_of` and `arrays_of` gave. Files of older versions have no `incremental`."""
    return Generation(
        number=meta["number"],
        class_ids=tuple(meta["class_ids"]),
        seen=arrays["seen"].astype(bool),
        vectors=arrays["vectors"],
        biases=arrays["biases"],
        centre=arrays["centre"],
        metric=meta["metric"],
        transform=meta["transform"],
        servable=meta["servable"],
        calibration=meta["calibration"],
        examples=arrays.get("examples"),
        incremental=meta.get("incremental", False),
    )
