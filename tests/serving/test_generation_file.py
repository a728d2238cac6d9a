"""An exported generation: read back as it was, and refused with one line of text if it is anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import damaged
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from stream_cgzsl.errors import UsageError
from stream_cgzsl.serving import file as generation_file
from stream_cgzsl.serving.generation import Generation

DEEP = "[" * 100_000 + "]" * 100_000
ARRAYS = {name: np.zeros(shape, np.float32) for name, shape in (("vectors", (2, 3)), ("biases", 2), ("centre", 3))}
GENERATION = Generation(1, ("a", "b"), np.ones(2, bool), **ARRAYS)


def write_metadata(path: Path, text: str) -> None:
    """A file with the right arrays and this text as its metadata."""
    path.write_bytes(save({**ARRAYS, "seen": np.ones(2, np.uint8)}, metadata={"cgzsl.generation.v1": text}))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "g.safetensors"


def test_a_generation_is_read_back_as_it_was(path: Path) -> None:
    generation_file.write(GENERATION, path)
    assert generation_file.read(path).digest == GENERATION.digest


@pytest.mark.parametrize(
    "changes",
    [
        {"class_ids": 7},
        {"class_ids": [1, 2]},
        {"class_ids": [None, None]},
        {"number": [1]},
        {"calibration": 3},
        {"metric": {}},
        {"digest": None},
    ],
    ids=str,
)
def test_strange_metadata_is_refused(path: Path, changes: dict[str, Any]) -> None:
    meta = {
        "number": 1,
        "class_ids": ["a", "b"],
        "metric": GENERATION.metric,
        "transform": GENERATION.transform,
        "servable": True,
        "calibration": {},
        "digest": GENERATION.digest,
    }
    write_metadata(path, json.dumps(meta))
    generation_file.read(path)
    write_metadata(path, json.dumps({**meta, **changes}))
    with pytest.raises(UsageError, match=f"^{path} is "):
        generation_file.read(path)


@pytest.mark.parametrize("text", [DEEP, "[1, 2]", "nonsense"], ids=["deep", "a list", "not JSON"])
def test_metadata_that_is_not_an_object_is_refused(path: Path, text: str) -> None:
    write_metadata(path, text)
    with pytest.raises(UsageError, match=f"^{path} is not an exported generation"):
        generation_file.read(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "whole.safetensors"
    generation_file.write(GENERATION, path)
    return path


@given(data=st.data())
def test_a_damaged_file_is_refused_or_gives_the_same_generation(whole: Path, data: st.DataObject) -> None:
    path = whole.with_name("damaged.safetensors")
    path.write_bytes(data.draw(damaged(whole.read_bytes())))
    try:
        assert generation_file.read(path).digest == GENERATION.digest
    except UsageError as error:
        assert str(error).startswith(f"{path} is ")


def test_one_changed_number_is_noticed(path: Path) -> None:
    generation_file.write(GENERATION, path)
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\1\0")
    with pytest.raises(UsageError, match="is damaged"):
        generation_file.read(path)


def test_a_file_that_is_too_large_is_not_read(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(generation_file.MAX_FILE_BYTES + 1)  # a sparse file: it takes no space
    with pytest.raises(UsageError, match="larger than"):
        generation_file.read(path)
