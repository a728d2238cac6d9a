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
from stream_cgzsl.serving.encoder import Layer
from stream_cgzsl.serving.generation import Generation

_FORMAT = "cgzsl.generation.v1"
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
            meta = dict(json.loads((file.metadata() or {})[_FORMAT]))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        generation = assembled(meta, arrays)
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
        "encoder": [layer.activation for layer in generation.encoder or ()],
    }


def arrays_of(generation: Generation) -> dict[str, Array]:
    arrays = {
        "vectors": generation.vectors,
        "biases": generation.biases,
        "centre": generation.centre,
        "seen": generation.seen.astype(np.uint8),
    }
    if generation.examples is not None:
        arrays["examples"] = generation.examples
    for number, layer in enumerate(generation.encoder or ()):
        arrays |= {f"encoder.{number}.weights": layer.weights, f"encoder.{number}.bias": layer.bias}
    return arrays


def assembled(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> Generation:
    """From what `meta_of` and `arrays_of` gave. Files of older versions have neither `incremental` nor `encoder`."""
    layers = [
        Layer(arrays[f"encoder.{number}.weights"], arrays[f"encoder.{number}.bias"], activation)
        for number, activation in enumerate(meta.get("encoder", ()))
    ]
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
        encoder=tuple(layers) or None,
    )
