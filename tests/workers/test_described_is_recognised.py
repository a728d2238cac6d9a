"""The product's promise: a class that is described on an idle stream is recognised, on both buses."""

from __future__ import annotations

import time
import uuid
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from helpers import new_bus, process, wait_for_answers, wait_for_window
from patience import until

from stream_cgzsl.benchmark.synthetic_world import World
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.demo.clients import DemoProducer
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.schemas import Sample, encode

pytestmark = pytest.mark.slow


def test_a_class_described_on_an_idle_stream_is_recognised(bus_url: str, tmp_path: Path) -> None:
    world, topics = World(), Topics(f"promise-{uuid.uuid4().hex[:8]}")
    known = world.classes[:18]
    settings = Settings(
        bus=bus_url,
        prefix=topics.prefix,
        attributes=world.attributes.shape[1],
        features=world.features,
        learner="closed-form",
    )
    with ExitStack() as stack:
        bus = stack.enter_context(new_bus(bus_url, 2, topics))
        workers = {
            command: stack.enter_context(process(command, settings, tmp_path / f"{command}.log"))
            for command in ("learn", "score")
        }

        def alive() -> None:
            for command, child in workers.items():
                assert child.poll() is None, (tmp_path / f"{command}.log").read_text()

        producer = stack.enter_context(closing(DemoProducer(bus, topics, world)))
        writer = stack.enter_context(bus.writer())

        def answered(tag: str, class_id: str) -> list[tuple[int | None, str | None]]:
            """Generation and class of the answers to ten samples of a class."""
            samples = {f"{tag}/{n}": row for n, row in enumerate(world.draw(class_id, 10, purpose=2))}
            for name, row in samples.items():
                writer.send(topics["samples"], encode(Sample(request_id=name, vector=row)))
            writer.flush()
            return [(p.generation, p.class_id) for p in wait_for_answers(bus, samples, topics, alive).values()]

        wait_for_window(bus, 0, topics, alive)
        producer.describe(known)
        wait_for_window(bus, 1, topics, alive)
        producer.teach(known[:12], 30, "first task")
        wait_for_window(bus, 2, topics, alive)
        until(lambda: {g for g, _ in answered(f"idle-{time.monotonic()}", known[0])} == {2}, "generation 2")
        newcomer = world.classes[18]
        producer.describe([newcomer])
        until(lambda: newcomer in {c for _, c in answered(f"new-{time.monotonic()}", newcomer)}, newcomer)
