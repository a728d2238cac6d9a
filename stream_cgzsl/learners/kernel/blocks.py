"""Rows that grow and change one by one: kept in blocks, so that neither ever copies what is already there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from stream_cgzsl.schemas import Array

BLOCK = 4096
"""Rows in a block, and classes in whatever is computed of all of them, some at a time."""

Places = npt.NDArray[np.int64]


class Blocks:
    """[any number, width]; a row that was never put is zero and takes no memory."""

    def __init__(self, width: int, dtype: npt.DTypeLike = np.float64) -> None:
        self._width = width
        self._dtype = np.dtype(dtype)
        self._blocks: list[Array] = []

    def take(self, places: Places) -> Array:
        """[places, width], a copy."""
        found = np.zeros((len(places), self._width), self._dtype)
        for block, of_block in self._of_blocks(places):
            found[of_block] = self._blocks[block][places[of_block] % BLOCK]
        return found

    def put(self, places: Places, rows: Array) -> None:
        """Rows at these places, which must be distinct; zeros until now where there was nothing."""
        while len(places) and int(places.max()) >= BLOCK * len(self._blocks):
            self._blocks.append(np.zeros((BLOCK, self._width), self._dtype))
        for block, of_block in self._of_blocks(places):
            self._blocks[block][places[of_block] % BLOCK] = rows[of_block]

    def _of_blocks(self, places: Places) -> Iterator[tuple[int, npt.NDArray[np.bool_] | slice]]:
        """Each block that has any of these places, and which of them it has."""
        blocks = places // BLOCK
        if len(places) and blocks[0] == blocks[-1] and (blocks == blocks[0]).all():
            if blocks[0] < len(self._blocks):
                yield int(blocks[0]), slice(None)
            return
        for block in np.unique(blocks):
            if block < len(self._blocks):
                yield int(block), blocks == block


def in_chunks(places: Places, size: int = BLOCK) -> Iterator[Places]:
    for start in range(0, len(places), size):
        yield places[start : start + size]
