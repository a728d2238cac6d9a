"""A stream whose generations were made by hand, so that every answer is known beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
from helpers import GENESIS, TOPICS, InThread, Producer, wait_for_answers

from stream_cgzsl.bus import Bus
from stream_cgzsl.generation import Generation
from stream_cgzsl.schemas import LedgerRecord, Prediction
from stream_cgzsl.windows.commit import Commit, publish

CLASSES = tuple(f"class-{i:02}" for i in range(16))
AXES = np.eye(16, dtype=np.float32)


def turned(number: int, servable: bool = True, classes: int = 16) -> Generation:
    """Generation `number` answers the i-th axis with class i + number - 1, so that answers tell who gave them."""
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
    """A ledger record with that generation; number 0 is the genesis."""
    record = LedgerRecord(
        number=number,
        kind="train" if number else "genesis",
        reason="test",
        genesis=None if number else GENESIS,
        configuration_digest="0" * 64,
        code="0",
    )
    with bus.publisher("t.learner") as publisher:
        publish(publisher, TOPICS, Commit(record, generation))


def ask(bus: Bus, worker: InThread, **questions: Any) -> dict[str, Prediction]:
    Producer(bus).ask({name: np.asarray(row, np.float32) for name, row in questions.items()})
    return wait_for_answers(bus, questions, alive=worker.alive)


def ask_until(bus: Bus, worker: InThread, generation: int) -> Prediction:
    """Asks about the 4th axis until that generation answers."""
    for number in range(1000):
        name = f"probe-{generation}-{number}"
        answered = ask(bus, worker, **{name: AXES[3]})[name]
        if answered.generation == generation:
            return answered
    raise AssertionError(f"generation {generation} was never served")
