"""Part of the scorer's benchmark: end-to-end latency of answers, of the scorer and of the bare loop in its place."""

from __future__ import annotations

import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scoring_parts import (
    PORT,
    await_ready,
    child,
    configure,
    first_answer,
    on_one_core,
    read_whole,
    scorers,
    serve_stream,
)

from stream_cgzsl.bus import Bus, TopicSpec
from stream_cgzsl.bus.topics import Topics

WARM_SECONDS, ROUND_SECONDS, ROUNDS_PER_TURN, MOST_TURNS = 4.0, 4.0, 4, 6
QUIET_ROUNDS = 5
QUIET = 0.005
"""In a quiet round, other guests of the host take less than this fraction of the processor (steal time)."""
SHORT_LIVED = {"segment.bytes": str(2**24), "retention.bytes": str(2**26)}
"""For samples that are sent for minutes: without it, growing into unused memory or disk would be measured too."""


class Times(NamedTuple):
    """Milliseconds, and the fraction of the processor that was stolen meanwhile."""

    p50: float
    p99: float
    stolen: float

    def __str__(self) -> str:
        return f"p50 {self.p50:.1f} ms, p99 {self.p99:.1f} ms"


def latency(bus: Bus, url: str, rate: float, directory: Path) -> tuple[list[Times], list[Times]]:
    """The rounds of the scorer and of the bare loop, which take turns, at that many samples per second.

    A host that gives the processor to others for 40 ms shows in the p99 of a round of four seconds. So the turns
    continue until both have enough quiet rounds.
    """
    ours: list[Times] = []
    bare: list[Times] = []
    for number in range(MOST_TURNS):
        topics = Topics(f"latency-{number}")
        serve_stream(bus, topics, 50, 2, 0)
        configure(url, topics["samples"], SHORT_LIVED)
        with scorers(url, topics, 1, directory, one_core=True, port=PORT):
            await_ready(1)
            ours += _rounds(bus, url, topics["samples"], topics["predictions"], rate)
        value, headers = first_answer(bus, topics["predictions"])
        source, target = f"{topics.prefix}-asked", f"{topics.prefix}-bare"
        bus.create([TopicSpec(source, 2, "expire", SHORT_LIVED), TopicSpec(target, 2, "expire")])
        process = on_one_core(child("bare", url, source, target, f"{topics.prefix}.bare", value, headers, None))
        time.sleep(5.0)  # to join its group
        bare += _rounds(bus, url, source, target, rate)
        process.kill()
        process.wait()
        ours_now, bare_now = (median_with_stolen(rounds[-ROUNDS_PER_TURN:]) for rounds in (ours, bare))
        print(f"  turn {number + 1}: {ours_now}; the bare loop {bare_now}", flush=True)
        if min(len(quiet(ours)), len(quiet(bare))) >= QUIET_ROUNDS:
            break
    return ours, bare


def _rounds(bus: Bus, url: str, source: str, target: str, rate: float) -> list[Times]:
    """Rounds of a client that asks without a pause, after a warm-up.

    Latency is from the client's send to the answer on the bus by the broker's clock, which is this machine's.
    """
    configure(url, target, {"message.timestamp.type": "LogAppendTime"})
    client = on_one_core(child("ask", url, source, rate, WARM_SECONDS + ROUNDS_PER_TURN * ROUND_SECONDS), 1)
    time.sleep(WARM_SECONDS)
    marks = [(time.time() * 1000, _processor_time())]
    for _ in range(ROUNDS_PER_TURN):
        time.sleep(ROUND_SECONDS)
        marks.append((time.time() * 1000, _processor_time()))
    client.wait()
    reached, last = sum(bus.end_offsets(target).values()), -1
    while reached > last:
        time.sleep(1.0)
        reached, last = sum(bus.end_offsets(target).values()), reached
    sent, answered = np.array([(int(r.key or b"0") / 1e6, r.timestamp_ms) for r in read_whole(bus, target)]).T
    found = []
    for (begin, before), (end, after) in pairwise(marks):
        took = (answered - sent)[(begin <= sent) & (sent < end)]
        spent = [b - a for a, b in zip(before, after, strict=True)]
        stolen = spent[7] / max(1, sum(spent)) if spent else 0.0
        p50, p99 = np.percentile(took, [50, 99])
        found.append(Times(float(p50), float(p99), stolen))
    return found


def _processor_time() -> list[int]:
    """Ticks since boot by kind, as in Linux's /proc/stat; empty on other systems."""
    stat = Path("/proc/stat")
    return [int(text) for text in stat.read_text().splitlines()[0].split()[1:9]] if stat.exists() else []


def quiet(times: list[Times]) -> list[Times]:
    return [t for t in times if t.stolen < QUIET]


def median(times: list[Times]) -> Times:
    return Times(*(statistics.median(column) for column in zip(*times, strict=True)))


def median_with_stolen(times: list[Times]) -> str:
    found = median(times)
    return f"{found} (stolen {100 * found.stolen:.1f} %)"
