"""Scorers are killed and added while samples arrive and generations change: every sample gets a right answer."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import numpy as np
from helpers import GENESIS, Producer, new_bus, process, read, settings_for
from patience import until
from served_stream import AXES, turned

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import LedgerRecord, Prediction, decode
from stream_cgzsl.serving.generation_io import commit_of, load_generation
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.commit import Commit, write_commit

GENERATIONS = 12
KILLS = 4


def publish_generation(bus: Bus, topics: Topics, number: int) -> None:
    record = LedgerRecord(
        number=number,
        kind="train" if number else "genesis",
        reason="test",
        genesis=None if number else GENESIS,
        configuration_digest="0" * 64,
        code="0",
    )
    with bus.publisher(f"{topics.prefix}.learner") as publisher:
        write_commit(publisher, topics, commit_of(record, turned(number)) if number else Commit(record))


def answers_in(bus: Bus, topics: Topics) -> list[Prediction]:
    events = [decode("predictions", r.key, r.value, r.headers) for r in read(bus, topics["predictions"])]
    return [event for event in events if isinstance(event, Prediction)]


def test_every_sample_is_answered_by_a_complete_generation(kafka_url: str, tmp_path: Path) -> None:
    topics = Topics(f"t{uuid.uuid4().hex[:8]}")
    dice, names = random.Random(5), count()
    asked: dict[str, np.ndarray] = {}
    with new_bus(f"{kafka_url}?session_timeout_ms=6000", 4, topics) as bus, ExitStack() as stack:
        publish_generation(bus, topics, 0)
        publish_generation(bus, topics, 1)
        settings, producer = settings_for(bus, topics, batch=16, max_wait=60), Producer(bus, topics)

        def start() -> Callable[[], None]:
            log = tmp_path / f"scorer-{next(names)}.log"
            return stack.enter_context(process("score", settings, log)).kill

        def ask() -> None:
            some = {f"q{len(asked) + n}": dice.choice(AXES) + 0.1 * dice.choice(AXES) for n in range(20)}
            asked.update(some)
            producer.ask(some)

        def ask_until_answered_by(number: int) -> None:
            def answered() -> bool:
                ask()
                return any(answer.generation == number for answer in answers_in(bus, topics))

            until(answered, f"an answer by generation {number}")

        scorers = [start(), start()]
        for number in range(2, GENERATIONS + 1):
            ask()
            publish_generation(bus, topics, number)
            ask()
            if number % 3 == 0 and number // 3 <= KILLS:
                scorers.pop(dice.randrange(len(scorers)))()  # SIGKILL
                scorers.append(start())
            if number == 7:
                scorers.append(start())
            if number % 3 == 2:  # so that the next kill hits scorers that answer, however slow the machine is
                ask_until_answered_by(number)
            else:
                time.sleep(0.3)
        until(lambda: set(asked) <= {answer.request_id for answer in answers_in(bus, topics)}, "every answer")

        records = ledger.read_all(bus, topics)
        generations = {r.number: load_generation(bus, topics, r) for r in records[1:]}
        answers = answers_in(bus, topics)
        assert {answer.request_id for answer in answers} == set(asked)
        assert {answer.status for answer in answers} == {"ok"}
        for answer in answers:
            generation = generations[answer.generation or 0]
            [[index]] = generation.classify(asked[answer.request_id][None], 1).indices
            assert answer.class_id == generation.class_ids[index]
        assert {2, 5, 8, 11} <= {answer.generation for answer in answers}  # generations did change meanwhile
