"""Texts, an encoder and a folder: the data set that `run` and `feed` read (docs/data.md)."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stream_cgzsl.benchmark.datasets.files import FORMATS, one_of
from stream_cgzsl.benchmark.encoding.encoders import Encoder, encode_all
from stream_cgzsl.benchmark.encoding.texts import Texts
from stream_cgzsl.errors import UsageError
from stream_cgzsl.runtime.atomic_write import write_atomically
from stream_cgzsl.schemas import Array


@dataclass(frozen=True)
class Encoded:
    """What was written: how many rows and classes, which classes have no description or no row, and two lengths."""

    rows: int
    classes: int
    named_only: tuple[str, ...]
    without_rows: tuple[str, ...]
    features: int
    attributes: int


def encode_folder(
    texts: Texts,
    descriptions: Mapping[str, str],
    encoder: Encoder,
    out: Path,
    batch: int = 32,
    show: Callable[[str, int, int], None] = lambda *_: None,
) -> Encoded:
    """Writes `features.npz` and `attributes.npz` to the folder `out`.

    The vector of a class is what the same encoder makes of its description, or of its name where it has none. Classes
    come in the order of the texts, then those that are only described. Raises `UsageError`, also where the folder has
    a data set already.
    """
    refuse_data(out)
    class_ids = list(dict.fromkeys([*texts.labels, *descriptions]))
    spoken = [descriptions.get(class_id, _spoken(class_id)) for class_id in class_ids]
    attributes = encode_all(encoder, spoken, batch, lambda done: show("classes", done, len(spoken)))
    features = encode_all(encoder, texts.items, batch, lambda done: show("texts", done, len(texts.items)))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror or error}; choose another --out") from error
    split = {"split": np.array(texts.split)} if texts.split else {}
    _write(out / "attributes.npz", attributes=attributes, classes=np.array(class_ids))
    _write(out / "features.npz", features=features, labels=np.array(texts.labels), **split)
    return Encoded(
        rows=len(features),
        classes=len(class_ids),
        named_only=tuple(class_id for class_id in class_ids if class_id not in descriptions),
        without_rows=tuple(sorted(set(class_ids) - set(texts.labels))),
        features=features.shape[1],
        attributes=attributes.shape[1],
    )


def refuse_data(out: Path) -> None:
    """Raises `UsageError` where the folder `out` has a data set already."""
    for stem in ("features", "attributes"):
        if (found := one_of(out, stem, tuple(FORMATS))) is not None:
            raise UsageError(f"{found} exists already: remove it, or choose another --out")


def _spoken(class_id: str) -> str:
    """`lost_card` as a person says it."""
    return class_id.replace("_", " ").replace("-", " ").strip() or class_id


def _write(path: Path, **arrays: Array) -> None:
    data = io.BytesIO()
    np.savez(data, **arrays)  # type: ignore[arg-type]  # its stub takes the names of its own flags for ours
    write_atomically(path, data.getvalue())
