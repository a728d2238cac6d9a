"""The sizes of the paper's five benchmarks, to notice a folder that has the name of one but other data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stream_cgzsl.benchmark.datasets.dataset import Dataset
from stream_cgzsl.benchmark.datasets.problems import wrong
from stream_cgzsl.benchmark.paper import facts

ATTRIBUTE_SPLITS = "att_splits"


@dataclass(frozen=True)
class Known:
    classes: int
    attributes: int
    images: int
    seen: int
    unseen: int


KNOWN = {name: Known(**found) for name, found in facts().items()}
"""AWA1, AWA2, aPY, CUB and SUN as the paper describes them."""

_SPELLINGS = {name.lower(): name for name in KNOWN}


def canonical(name: str) -> str:
    """The paper's spelling of a data set, such as `aPY` for APY. Other names stay as they are."""
    return _SPELLINGS.get(name.lower(), name)


def check_known(data: Dataset, path: Path, splits: str) -> None:
    """Raises `UsageError` where a benchmark's splits do not have its classes. The number of images may differ."""
    known = KNOWN.get(data.name)
    if known is None:
        return
    advice = f"{{}}, as in {data.name}; rename the folder if it holds other data"
    classes, attributes = data.attributes.shape
    if classes != known.classes:
        raise wrong(path, "att", f"{classes} classes", advice.format(known.classes))
    if splits == ATTRIBUTE_SPLITS and attributes != known.attributes:
        raise wrong(path, "att", f"{attributes} attributes per class", advice.format(known.attributes))
    for field, pool, expected in (
        ("trainval_loc", data.seen_pool, known.seen),
        ("test_unseen_loc", data.unseen_pool, known.unseen),
    ):
        if len(pool) != expected:
            raise wrong(path, field, f"rows of {len(pool)} classes", advice.format(expected))
