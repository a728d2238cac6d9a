"""The contract as files, for producers and consumers in any language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stream_cgzsl.schemas import asyncapi, json_schemas


def documents() -> dict[str, bytes]:
    """Every file by its path: `json/<event>.json`, the JSON Schemas, and `asyncapi.json`. Always the same bytes."""
    files = {
        f"json/{json_schemas.file_name(event)}": json_schemas.object_schema(event) for event in json_schemas.events()
    }
    return {path: _text(content) for path, content in {**files, "asyncapi.json": asyncapi.document()}.items()}


def write(directory: Path) -> list[Path]:
    """Writes `documents()` under `directory`, creating it if needed. Returns the paths written."""
    written = []
    for name, content in documents().items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        written.append(path)
    return written


def _text(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
