"""Whether an event fits the stream it was sent to, and the hash by which its id is remembered."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from stream_cgzsl.schemas import Array, Attribute, BulkReader, Decoder, Genesis, InvalidEvent, VectorEvent


def feature_reader(role: str, genesis: Genesis | None, decoder: Decoder | None = None) -> BulkReader:
    """Reads features, holdout or samples of a stream. Its `read_all` refuses what `check_feature` refuses.

    Without a genesis vectors of any length are valid, and their numbers are not collected.
    """
    if genesis is None:
        return BulkReader(role, None, decoder=decoder)
    least = None if genesis.signed else 0.0
    return BulkReader(role, genesis.features, least, lambda event: check_feature(event, genesis), decoder)


def check_attribute(event: Attribute, genesis: Genesis) -> None:
    """Raises `InvalidEvent` for a description that does not fit the stream."""
    _check_dimension(event.vector, genesis.attributes, "attribute")


def check_feature(event: VectorEvent, genesis: Genesis) -> None:
    """Raises `InvalidEvent` for a feature, holdout or sample that does not fit the stream."""
    _check_dimension(event.vector, genesis.features, "feature")
    if not genesis.signed and event.vector.min() < 0:
        raise InvalidEvent(
            "negative-feature",
            f"the smallest number is {event.vector.min():g}",
            "no negative numbers: the genesis says that features are not signed",
            "Recreate the stream with --signed if your encoder gives negative numbers.",
        )


def _check_dimension(vector: Array, expected: int, what: str) -> None:
    if vector.size != expected:
        raise InvalidEvent(
            "wrong-dimension",
            f"the vector has {vector.size} numbers",
            f"{expected}, the stream's {what} dimension since its genesis",
            "Send vectors of the encoder this stream was made for, or make another stream.",
        )


def hash_ids(role: str, texts: Iterable[str | None]) -> list[bytes | None]:
    """As `hash_id`, of each that is not None."""
    start, sha256 = f"{role}\0", hashlib.sha256
    return [None if text is None else sha256((start + text).encode()).digest()[:16] for text in texts]


def hash_id(role: str, text: str) -> bytes:
    """The 16 bytes by which a record's id is remembered and ordered."""
    return hashlib.sha256(f"{role}\0{text}".encode()).digest()[:16]
