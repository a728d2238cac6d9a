"""The classes of the newest generation, and the latest changes."""

from __future__ import annotations

from collections import deque
from typing import Any

from stream_cgzsl.serving.generation import Generation

SHOWN = 1200
"""The most classes that the page draws; of the others it shows the number."""

CHANGES = 12


class Classes:
    """Compares each generation with the previous one."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._seen: dict[str, bool] = {}
        self._changes: deque[dict[str, Any]] = deque(maxlen=CHANGES)

    def update(self, generation: Generation) -> None:
        """The first generation is not compared with anything."""
        now = dict(zip(generation.class_ids, generation.seen.tolist(), strict=True))
        if self.number is not None:
            for class_id, what in _changes(self._seen, now):
                self._changes.append({"window": generation.number, "class_id": class_id, "what": what})
        self.number, self._seen = generation.number, now

    def part(self) -> dict[str, Any]:
        """What the page gets: at most `SHOWN` classes, and the latest changes, newest first."""
        shown = [[class_id, seen] for class_id, seen in list(self._seen.items())[:SHOWN]]
        return {"shown": shown, "more": len(self._seen) - len(shown), "changes": list(self._changes)[::-1]}


def _changes(before: dict[str, bool], now: dict[str, bool]) -> list[tuple[str, str]]:
    found = [(class_id, "retired") for class_id in before if class_id not in now]
    for class_id, seen in now.items():
        if before.get(class_id) != seen:
            found.append((class_id, "learned" if seen else "unlearned" if class_id in before else "described"))
    return found
