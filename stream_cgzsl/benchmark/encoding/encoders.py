"""What turns texts into vectors: a model that sentence-transformers loads, or a function of your own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from stream_cgzsl.benchmark.encoding.texts import Item
from stream_cgzsl.errors import UsageError
from stream_cgzsl.runtime.functions import load_function, names_a_function
from stream_cgzsl.schemas import Array

DEFAULT = "sentence-transformers/all-MiniLM-L6-v2"

Encoder = Callable[[Sequence[Item]], Array]
"""Some items -> [items, numbers]"""


def load_encoder(name: str, device: str = "cpu") -> Encoder:
    """The encoder of that name: `module:function`, the path of a model's folder, or a model's name.

    Raises `UsageError` where it cannot be loaded.
    """
    if names_a_function(name) and not Path(name).exists():
        return load_function(name, "--encoder")
    return _sentence_encoder(name, device)


def _sentence_encoder(name: str, device: str) -> Encoder:
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError as error:
        raise UsageError(
            f"--encoder {name}: sentence encoders are not installed: pip install 'stream-cgzsl[encode]', or name a "
            "function of your own with --encoder module:function"
        ) from error
    logging.disable_progress_bar()
    try:
        model = SentenceTransformer(
            name,
            device=device,
            trust_remote_code=False,
            local_files_only=Path(name).is_dir(),
            model_kwargs={"use_safetensors": True},  # never a pickle
        )
    except Exception as error:  # the hub, the network and damaged files: each raises something else
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(
            f"--encoder {name}: cannot be loaded: {first[0]}; a model is downloaded the first time, or name the folder "
            "of one that you have"
        ) from error
    model.eval()

    def encode(items: Sequence[Item]) -> Array:
        texts = [item for item in items if isinstance(item, str)]
        if len(texts) < len(items):
            path = next(item for item in items if not isinstance(item, str))
            raise UsageError(f"{path}: not a .txt file; name a function that reads it with --encoder module:function")
        return np.asarray(model.encode(texts, batch_size=len(texts), show_progress_bar=False))

    return encode


def encode_all(
    encoder: Encoder, items: Sequence[Item], batch: int, done: Callable[[int], None] = lambda _: None
) -> Array:
    """[items, numbers] float32, `batch` items at a time: texts of similar lengths together, so that few are padded.

    What is in a batch depends on the items alone. `done` is told how many items are encoded so far.
    """
    order = sorted(range(len(items)), key=lambda place: (len(str(items[place])), place))
    rows: dict[int, Array] = {}
    for first in range(0, len(order), batch):
        places = order[first : first + batch]
        found = np.asarray(encoder([items[place] for place in places]))
        shape = (len(places), found.shape[-1] if not rows else next(iter(rows.values())).size)
        if found.shape != shape or not found.size or found.dtype.kind not in "fiu":
            raise UsageError(
                f"--encoder: for {shape[0]} items it gave {found.dtype} of shape {found.shape}; expected numbers of "
                f"shape {shape}"
            )
        if not np.isfinite(found).all():
            raise UsageError(f"--encoder: a number is NaN or infinite, for one of {str(items[places[0]])[:60]!r}, ...")
        rows |= zip(places, found.astype(np.float32), strict=True)
        done(len(rows))
    return np.stack([rows[place] for place in range(len(items))])
