"""Draws which room of stream_cgzsl imports which, from the imports themselves: `python docs/rooms.py` writes rooms.svg.

The order of the rooms is that of the layers in pyproject.toml, which `lint-imports` enforces.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp

DOCS = Path(__file__).parent
PACKAGE = "stream_cgzsl"

PURPOSES = {
    "cli": "what people type",
    "demo": "the first five minutes",
    "benchmark": "data sets, runs, studies",
    "workers": "the processes",
    "report": "pages for people",
    "history": "from a ledger to a learner",
    "evaluation": "how good a generation is",
    "learners": "from a window to a generation",
    "serving": "generations and their answers",
    "windows": "cuts, windows, the ledger",
    "bus": "Kafka and SQLite",
    "runtime": "settings, metrics, environment",
    "schemas": "events and their encoding",
    "errors": "every error, with its exit code",
}

LEFT, TOP, CELL, WIDTH = 330, 100, 40, 912

STYLE = """
    text { fill: #1d2733; }
    .note { font-size: 12px; fill: #4d5b6a; }
    .layer { fill: #eef4fb; stroke: #3b6ea5; }
    .cell { fill: none; stroke: #8693a1; stroke-opacity: 0.35; }
    .self { fill: #8693a1; fill-opacity: 0.35; }
    .import { fill: #b07a14; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e8edf3; } .note { fill: #aab6c3; } .import { fill: #e0b04c; }
      .layer { fill: #17293d; stroke: #7fb0e6; }
    }
"""


def layers() -> list[list[str]]:
    """The rooms from top to bottom; rooms side by side share a layer."""
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = (contract for contract in contracts if contract.get("containers") == [PACKAGE])
    return [[room.strip() for room in re.split("[|:]", layer)] for layer in contract["layers"]]


def imports() -> dict[str, set[str]]:
    """The rooms that each room imports."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    rooms = graph.find_children(PACKAGE)
    for room in rooms:
        graph.squash_module(room)
    return {
        _name(room): {_name(m) for m in graph.find_modules_directly_imported_by(room) & rooms - {room}}
        for room in rooms
    }


def _name(module: str) -> str:
    return module.rpartition(".")[2]


def picture(layers: list[list[str]], imports: dict[str, set[str]]) -> str:
    rooms = [room for layer in layers for room in layer]
    height = TOP + CELL * len(rooms) + 20
    label = ". ".join(f"{room} imports {', '.join(sorted(imports[room])) or 'no other room'}" for room in rooms)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}."'
        f' font-family="Helvetica, Arial, sans-serif" font-size="14">\n  <style>{STYLE}  </style>'
    )
    note = '<text class="note" x="20" y="30">A dot: the room of this row imports the room of this column.</text>'
    parts = [head, note, *_layers(layers), *_columns(rooms), *_cells(rooms, imports), "</svg>"]
    return "\n  ".join(parts[:-1]) + f"\n{parts[-1]}\n"


def _layers(layers: list[list[str]]) -> Iterator[str]:
    """One box per layer, with its rooms and what each is for."""
    row = 0
    for layer in layers:
        y = TOP + CELL * row
        yield f'<rect class="layer" x="10" y="{y + 3}" width="{LEFT - 22}" height="{CELL * len(layer) - 6}" rx="8"/>'
        for number, room in enumerate(layer):
            middle = y + CELL * number + 25
            yield f'<text x="22" y="{middle}">{room}</text>'
            yield f'<text class="note" x="112" y="{middle}">{PURPOSES[room]}</text>'
        row += len(layer)


def _columns(rooms: list[str]) -> Iterator[str]:
    for column, room in enumerate(rooms):
        x = LEFT + CELL * column + CELL // 2
        yield f'<text class="note" transform="translate({x + 4} {TOP - 10}) rotate(-50)">{room}</text>'


def _cells(rooms: list[str], imports: dict[str, set[str]]) -> Iterator[str]:
    for row, room in enumerate(rooms):
        for column, other in enumerate(rooms):
            x, y = LEFT + CELL * column, TOP + CELL * row
            kind = "cell self" if other == room else "cell"
            yield f'<rect class="{kind}" x="{x}" y="{y}" width="{CELL}" height="{CELL}"/>'
            if other in imports[room]:
                yield f'<circle class="import" cx="{x + CELL // 2}" cy="{y + CELL // 2}" r="8"/>'


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    (folder / "rooms.svg").write_text(picture(layers(), imports()))
