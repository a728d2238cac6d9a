"""A stream with hand-made generations, so that the right answer to every sample is known."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

import numpy as np
from helpers import GENESIS, TOPICS, InThread, Producer, wait_for_answers
from patience import PATIENCE_SECONDS

from stream_cgzsl.bus import Bus
from stream_cgzsl.schemas import LedgerRecord, Prediction
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.generation_io import commit_of
from stream_cgzsl.windows.commit import Commit, write_commit

CLASSES = tuple(f"class-{i:02}" for i in range(16))
AXES = np.eye(16, dtype=np.float32)


def turned(number: int, servable: bool = True, classes: int = 16) -> Generation:
    """Generation `number` answers the i-th axis with class i + number - 1: an answer shows which generation gave it."""
    return Generation(
        number,
        CLASSES[:classes],
        np.arange(classes) % 2 == 0,
        np.roll(AXES, 1 - number, axis=1)[:classes],
        np.zeros(classes, np.float32),
        np.zeros(16, np.float32),
        servable=servable,
    )


def commit(bus: Bus, number: int, generation: Generation | None = None) -> None:
    """Commits window `number` with that generation; number 0 is the genesis, which has none."""
    record = LedgerRecord(
        number=number,
        kind="train" if number else "genesis",
        reason="test",
        genesis=None if number else GENESIS,
        configuration_digest="0" * 64,
        code="0",
    )
    with bus.publisher("t.learner") as publisher:
        write_commit(publisher, TOPICS, Commit(record) if generation is None else commit_of(record, generation))


def ask(bus: Bus, worker: InThread, **questions: Any) -> dict[str, Prediction]:
    Producer(bus).ask({name: np.asarray(row, np.float32) for name, row in questions.items()})
    return wait_for_answers(bus, questions, alive=worker.alive)


def ask_until(bus: Bus, worker: InThread, generation: int) -> Prediction:
    """Asks about the 4th axis until that generation answers."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for number in count():
        name = f"probe-{generation}-{number}"
        answer = ask(bus, worker, **{name: AXES[3]})[name]
        if answer.generation == generation:
            break
        assert time.monotonic() < deadline, f"generation {generation} was never served"
    return answer
