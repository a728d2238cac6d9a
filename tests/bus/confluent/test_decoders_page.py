"""The decoders on docs/events.md give the events they claim."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from schema_registry import SchemaRegistry, framed
from test_avro_records import written

from stream_cgzsl.bus import Record
from stream_cgzsl.runtime.functions import load_function
from stream_cgzsl.schemas import Decoder, Feature, decode_with

PAGE = (Path(__file__).parents[3] / "docs" / "events.md").read_text()
PLAIN, AROUND = re.findall(r"^```python\n((?:(?!```).)*def read\(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)

CONTENT = {"species": "zebra", "image": "img-7", "embedding": [0.5, 1.0]}
IMAGE = {
    "type": "record",
    "name": "Image",
    "fields": [
        {"name": "species", "type": "string"},
        {"name": "image", "type": "string"},
        {"name": "embedding", "type": {"type": "array", "items": "float"}},
    ],
}


@pytest.mark.parametrize(
    ("text", "value"), [(PLAIN, json.dumps(CONTENT).encode()), (AROUND, framed(7, written(IMAGE, CONTENT)))]
)
def test_a_decoder_on_the_page_gives_a_feature(schemas: SchemaRegistry, text: str, value: bytes) -> None:
    schemas.add(7, IMAGE)
    names: dict[str, Any] = {}
    exec(text, names)
    event = decode_with(Decoder("my:read", names["read"]), "features", Record("t", 0, 0, 0, None, value, ()))
    assert event == Feature(class_id="zebra", vector=np.array([0.5, 1], np.float32), id="img-7")


def test_the_decoders_named_on_the_page_exist() -> None:
    named = re.findall(r"`(stream_cgzsl[\w.]+:\w+)`", PAGE)
    assert len(named) == 2
    assert all(callable(load_function(name, "--decoder")) for name in named)
