"""Snapshots as bytes."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save
from worlds import arrays_equal

from stream_cgzsl.learners.interface import Snapshot
from stream_cgzsl.learners.snapshots import from_bytes, to_bytes

SNAPSHOT = Snapshot(
    {
        "means": np.linspace(0, 1, 6).reshape(2, 3),
        "none": np.zeros((0, 4), np.float32),
        "one": np.array(3.5),
        "ids": np.arange(8, dtype=np.uint8),
        "turned": np.arange(6.0).reshape(2, 3).T,
    },
    {"learner": "x", "names": ["Zaunkönig", None], "counts": {"a": 3}},
)


def test_arrays_and_meta_survive() -> None:
    found = from_bytes(to_bytes(SNAPSHOT))
    assert arrays_equal(dict(found.arrays), dict(SNAPSHOT.arrays))
    assert found.meta == SNAPSHOT.meta


def test_bytes_do_not_depend_on_the_order_of_names() -> None:
    turned = Snapshot(dict(reversed(SNAPSHOT.arrays.items())), dict(reversed(SNAPSHOT.meta.items())))
    assert to_bytes(turned) == to_bytes(SNAPSHOT)


DEEP = "[" * 100_000 + "]" * 100_000
HUGE_HEADER = (2**40).to_bytes(8, "little") + b"{}"


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"abc", b"\xff" * 8, b"\xff" * 40, bytes(8), HUGE_HEADER),
        *(to_bytes(SNAPSHOT)[:-1], to_bytes(SNAPSHOT)[:30]),
        save({"a": np.zeros(1, np.float32)}, metadata={"meta": DEEP}),
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="are not a learner's snapshot"):
        from_bytes(data)
