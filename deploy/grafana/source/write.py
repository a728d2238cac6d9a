"""Writes the dashboards: `python deploy/grafana/source/write.py`. A test writes them elsewhere and compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from learning import LEARNING
from serving import SERVING
from stream import STREAM

FOLDER = Path(__file__).parents[1] / "dashboards"


def documents() -> dict[str, str]:
    """The files, by name."""
    boards = {"stream": STREAM, "learning": LEARNING, "serving": SERVING}
    return {f"{name}.json": json.dumps(board.document(), indent=2) + "\n" for name, board in boards.items()}


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, text in documents().items():
        (folder / name).write_text(text)
