"""Describes a class that no example was sent of, and asks until the scorers recognise it: how long does that take?

Runs in our image: described.py BUS PREFIX NUMBER [--teach]. NUMBER is that of the class in the synthetic world, above
those of the classes that the stream has; --teach sends the examples of the first twelve before.
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from itertools import count
from statistics import fmean

from stream_cgzsl import Topics, connect
from stream_cgzsl.benchmark.synthetic_world import World
from stream_cgzsl.demo.clients import DemoClient, DemoProducer

PATIENCE_SECONDS = 180.0


def recognised(client: DemoClient, class_ids: tuple[str, ...]) -> float:
    """Waits until most answers are right, and returns which fraction is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for number in count():
        accuracy = fmean(client.accuracy(class_ids, 20, f"{time.time_ns()}-{number}").values())
        if accuracy > 0.5:
            return accuracy
        if time.monotonic() > deadline:
            sys.exit(f"after {PATIENCE_SECONDS:g} s only {accuracy:.0%} of the answers are right: {class_ids}")
        time.sleep(0.1)
    raise AssertionError


def main(url: str, prefix: str, number: int, teach: bool) -> None:
    world = World(number + 1, attributes=32, features=128)
    first, newcomer = world.classes[:12], world.classes[number]
    topics = Topics(prefix)
    with (
        connect(url) as bus,
        closing(DemoProducer(bus, topics, world)) as producer,
        closing(DemoClient(bus, topics, world, alive=lambda: None)) as client,
    ):
        if teach:
            producer.describe(first)
            producer.teach(first, 40, "first task")
            print(f"12 classes taught: {recognised(client, first):.0%} of the answers are right", flush=True)
        started = time.monotonic()
        producer.describe([newcomer])
        accuracy = recognised(client, (newcomer,))
        print(f"{newcomer}: described, and {accuracy:.0%} right {time.monotonic() - started:.1f} s later")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), "--teach" in sys.argv[4:])
