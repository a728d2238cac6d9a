"""The classes of a generation in blocks, so that a generation shares with the one before what did not change."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stream_cgzsl.schemas import Array
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.scoring import Scoring

BLOCK_ROWS = 1024
"""Classes in a block. A change of one class copies its block; scoring costs a few calls a block."""


@dataclass(frozen=True, eq=False)
class Block:
    """Neighbouring classes, sorted by id. Nothing in it is ever changed."""

    class_ids: tuple[str, ...]
    seen: npt.NDArray[np.bool_]  # [classes]
    vectors: Array  # [classes, features]
    biases: Array  # [classes]
    examples: npt.NDArray[np.int64] | None  # [classes]

    @cached_property
    def digests(self) -> npt.NDArray[np.uint8]:
        """[classes, 32]: one sha256 a class."""
        rows = zip(self.class_ids, self.seen.tolist(), self.biases, self.vectors, strict=True)
        found = b"".join(_row_digest(*row) for row in rows)
        return np.frombuffer(found, np.uint8).reshape(len(self.class_ids), 32)

    def scoring(self, metric: str, centre: Array, transform: str) -> Scoring:
        """Made once: all generations that share a block have these in common."""
        found: Scoring | None = self.__dict__.get("_scoring")
        if found is None:
            vectors = unit(self.vectors) if metric == "cosine" else self.vectors
            found = self.__dict__["_scoring"] = Scoring(vectors, self.biases, centre, transform)
        return found


Blocks = tuple[Block, ...]
"""In the order of class ids."""


def split(block: Block) -> Blocks:
    """A block of any size as blocks of at most `BLOCK_ROWS`; without a copy."""
    return tuple(_part(block, start, start + BLOCK_ROWS) for start in range(0, len(block.class_ids), BLOCK_ROWS))


def changed(blocks: Blocks, delta: Delta) -> Blocks:
    """The blocks after a delta. Those that it does not touch are the same objects."""
    if not blocks:
        return split(_rows(delta, range(len(delta.class_ids)), with_examples=True))
    firsts = [block.class_ids[0] for block in blocks]
    rows: dict[int, list[int]] = {}
    gone: dict[int, set[str]] = {}
    for row, class_id in enumerate(delta.class_ids):
        rows.setdefault(max(0, bisect_right(firsts, class_id) - 1), []).append(row)
    for class_id in delta.withdrawn:
        gone.setdefault(max(0, bisect_right(firsts, class_id) - 1), set()).add(class_id)
    found: list[Block] = []
    for place, block in enumerate(blocks):
        if place in rows or place in gone:
            new = _rows(delta, rows.get(place, ()), block.examples is not None)
            merged = _merged(block, new, gone.get(place, set()))
            found.extend(split(merged) if len(merged.class_ids) > 2 * BLOCK_ROWS else [merged])
        else:
            found.append(block)
    return tuple(block for block in found if block.class_ids)


def joined_vectors(blocks: Blocks, features: int) -> Array:
    """[classes, features], a copy where there are several blocks."""
    if len(blocks) == 1:
        return blocks[0].vectors
    return np.concatenate([block.vectors for block in blocks] or [np.zeros((0, features), np.float32)])


def all_ids(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from block.class_ids


def unit(rows: Array) -> Array:
    """Rows at length 1; a row of zeros stays zero."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))


def _row_digest(class_id: str, seen: bool, bias: np.float32, vector: Array) -> bytes:
    digest = hashlib.sha256(f"{class_id}\0{seen:d}".encode())
    digest.update(bias.tobytes())
    digest.update(vector.data)
    return digest.digest()


def _rows(delta: Delta, rows: Iterable[int], with_examples: bool) -> Block:
    """Some rows of a delta."""
    taken = list(rows)
    return Block(
        tuple(delta.class_ids[row] for row in taken),
        delta.seen[taken],
        np.ascontiguousarray(delta.vectors[taken], "<f4"),
        np.asarray(delta.biases[taken], "<f4"),
        np.asarray(delta.examples[taken], "<i8") if with_examples else None,
    )


def _part(block: Block, start: int, stop: int) -> Block:
    part = Block(
        block.class_ids[start:stop],
        block.seen[start:stop],
        block.vectors[start:stop],
        block.biases[start:stop],
        None if block.examples is None else block.examples[start:stop],
    )
    if "digests" in block.__dict__:
        part.__dict__["digests"] = block.digests[start:stop]
    return part


def _merged(block: Block, new: Block, gone: set[str]) -> Block:
    """The rows of both in the order of ids, but for those of `block` that are replaced or gone."""
    replaced = gone.union(new.class_ids)
    kept = [index for index, class_id in enumerate(block.class_ids) if class_id not in replaced]
    ids = [*(block.class_ids[index] for index in kept), *new.class_ids]
    order = sorted(range(len(ids)), key=ids.__getitem__)
    source = [kept[i] if i < len(kept) else len(block.class_ids) + i - len(kept) for i in order]
    merged = Block(
        tuple(ids[i] for i in order),
        np.concatenate([block.seen, new.seen])[source],
        np.concatenate([block.vectors, new.vectors])[source],
        np.concatenate([block.biases, new.biases])[source],
        None
        if block.examples is None or new.examples is None
        else np.concatenate([block.examples, new.examples])[source],
    )
    if "digests" in block.__dict__:  # so that only new rows are hashed
        merged.__dict__["digests"] = np.concatenate([block.digests, new.digests])[source]
    return merged
