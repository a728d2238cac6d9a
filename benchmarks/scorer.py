"""How fast a scorer answers, beside a bare loop of the Kafka client that moves the same bytes.

(a) Samples of 2048 numbers a second by one scorer process, with 50 and with 717 classes, and by the bare loop in its place.
(b) `classify` alone beside its matrix product. (c) Latency at half of that load, from a client's send to the answer on the
bus, of the scorer and of the bare loop. (d) Two scorers on two partitions beside one. (e) Memory of a scorer over 1,000
generation swaps. (f) Loading and swapping large generations while samples are answered. Ratios are within one run: rounds
take turns. In (a) and (c) the scorer and the bare loop are kept on one core. Latency is told of all rounds, and of those in
which the host took less than half a percent of the processor: the bar is for these, if there are any. Our own broker writes
40 MB a second to the folder for temporary files: set TMPDIR where its disk is shared.

    python benchmarks/scorer.py [--check] [--samples 24000] [--rounds 5] [--swaps 1000] [--kafka URL]
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: as a scorer process has it

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from learner import kafka_at
from scoring_parts import (
    DISTINCT,
    NUMBERS,
    await_answers,
    child,
    commit,
    configure,
    generation,
    metric,
    on_one_core,
    read_whole,
    resident_mb,
    rows,
    scorers,
    serve_stream,
)

from stream_cgzsl.bus import Bus, TopicPartition, TopicSpec, connect
from stream_cgzsl.bus.topics import Topics

BARS = {50: 0.7, 717: 0.5}
BAR_CLASSIFY = 1.5
CANDIDATES = 5  # as many as an answer of a scorer has
BAR_P99_MS = 50.0
WARM_SECONDS, ROUND_SECONDS, ROUNDS_A_TURN, MOST_TURNS = 4.0, 4.0, 4, 6
QUIET_ROUNDS = 5
QUIET = 0.005
"""In a quiet round the host takes less than this share of the processor."""
OWN_BROKER = {"log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "1000"}
SHORT_LIVED = {"segment.bytes": str(2**24), "retention.bytes": str(2**26)}
"""Of samples that come for minutes: memory or disk the system has not used yet would be part of what is measured."""
BAR_GROWTH = 1.1
PORT = 29517


class Times(NamedTuple):
    """Milliseconds, and what the host took of the processor meanwhile: a share of it."""

    p50: float
    p99: float
    stolen: float

    def __str__(self) -> str:
        return f"p50 {self.p50:.1f} ms, p99 {self.p99:.1f} ms"


def throughput(
    bus: Bus, url: str, classes: int, samples: int, rounds: int, directory: Path
) -> tuple[float, float, float]:
    """Answers a second, bare and ours, and the median of the ratios."""
    ours: list[float] = []
    plain: list[float] = []
    for number in range(rounds):
        topics = Topics(f"s{classes}-{number}")
        serve_stream(bus, topics, classes, 2, samples)
        with scorers(url, topics, 1, directory, one_core=True) as children:
            ours.append(await_answers(bus, topics["predictions"], samples, children))
        value, headers = _an_answer(bus, topics["predictions"])
        target = f"{topics.prefix}-bare"
        bus.create([TopicSpec(target, 2, "expire")])
        group = f"{topics.prefix}.bare"
        process = on_one_core(child("bare", url, topics["samples"], target, group, value, headers, samples))
        process.wait()
        plain.append(await_answers(bus, target, samples, []))
    return (
        statistics.median(plain),
        statistics.median(ours),
        statistics.median(o / p for o, p in zip(ours, plain, strict=True)),
    )


def _an_answer(bus: Bus, topic: str) -> tuple[str, list[list[str]]]:
    with bus.reader({TopicPartition(topic, 0): 0}) as reader:
        record = reader.poll(5.0, 1)[0]
    return (record.value or b"").decode(), [[name, value.decode()] for name, value in record.headers]


def classify_alone(classes: int, candidates: int, times: int = 100) -> float:
    """`classify`, as a multiple of the matrix product in it. Each batch is new to both, as in a stream."""
    model = generation(1, classes)
    columns = np.ascontiguousarray(model.vectors.T)
    batches = [np.roll(rows(), place, axis=1) for place in range(8)]
    model.classify(batches[0], candidates)
    ratios = []
    for number in range(times):
        taken = _seconds(partial(model.classify, batches[number % 8], candidates))
        ratios.append(taken / _seconds(partial(np.matmul, batches[(number + 4) % 8], columns)))
    return statistics.median(ratios)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def latency(bus: Bus, url: str, rate: float, directory: Path) -> tuple[list[Times], list[Times]]:
    """Of the scorer and of the bare loop in its place, at that many samples a second. They take turns.

    A host that gives the processor to others for 40 ms shows in the hundredth answer of a round of four seconds. So they go
    on until enough rounds of both were quiet.
    """
    ours: list[Times] = []
    plain: list[Times] = []
    for number in range(MOST_TURNS):
        topics = Topics(f"latency-{number}")
        serve_stream(bus, topics, 50, 2, 0)
        configure(url, topics["samples"], SHORT_LIVED)
        with scorers(url, topics, 1, directory, one_core=True, port=PORT):
            _await_ready(1)
            ours += _rounds(bus, url, topics["samples"], topics["predictions"], rate)
        value, headers = _an_answer(bus, topics["predictions"])
        source, target = f"{topics.prefix}-asked", f"{topics.prefix}-bare"
        bus.create([TopicSpec(source, 2, "expire", SHORT_LIVED), TopicSpec(target, 2, "expire")])
        process = on_one_core(child("bare", url, source, target, f"{topics.prefix}.bare", value, headers, None))
        time.sleep(5.0)  # to join its group
        plain += _rounds(bus, url, source, target, rate)
        process.kill()
        process.wait()
        print(
            f"  turn {number + 1}: {_told(ours[-ROUNDS_A_TURN:])}; the bare loop {_told(plain[-ROUNDS_A_TURN:])}",
            flush=True,
        )
        if min(len(_quiet(ours)), len(_quiet(plain))) >= QUIET_ROUNDS:
            break
    return ours, plain


def _rounds(bus: Bus, url: str, source: str, target: str, rate: float) -> list[Times]:
    """Of those who ask without a pause, after a while. An answer's time is from a client's send to its being on the bus, as
    the broker's clock has it: the same machine's."""
    configure(url, target, {"message.timestamp.type": "LogAppendTime"})
    asker = on_one_core(child("ask", url, source, rate, WARM_SECONDS + ROUNDS_A_TURN * ROUND_SECONDS), 1)
    time.sleep(WARM_SECONDS)
    marks = [(time.time() * 1000, _processor_time())]
    for _ in range(ROUNDS_A_TURN):
        time.sleep(ROUND_SECONDS)
        marks.append((time.time() * 1000, _processor_time()))
    asker.wait()
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
    """Ticks since the start, by what they went to, as Linux tells; nothing elsewhere."""
    stat = Path("/proc/stat")
    return [int(text) for text in stat.read_text().splitlines()[0].split()[1:9]] if stat.exists() else []


def _quiet(times: list[Times]) -> list[Times]:
    return [t for t in times if t.stolen < QUIET]


def _median(times: list[Times]) -> Times:
    return Times(*(statistics.median(column) for column in zip(*times, strict=True)))


def _told(times: list[Times]) -> str:
    found = _median(times)
    return f"{found} (host {100 * found.stolen:.1f} %)"


def _from_the_end(bus: Bus, topic: str) -> dict[TopicPartition, int]:
    return {TopicPartition(topic, p): end for p, end in bus.end_offsets(topic).items()}


def _await_ready(number: int) -> None:
    """Until the scorer on `PORT` serves generation `number`."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if metric(f"http://127.0.0.1:{PORT}", "cgzsl_generation_number") >= number:
                return
        except OSError:
            pass
        time.sleep(0.01)
    raise RuntimeError(f"generation {number} was not served within a minute")


def two_beside_one(bus: Bus, url: str, samples: int, directory: Path) -> float:
    """Of the second half: while one joins the other, their group settles."""
    rates = []
    for count in (1, 2):
        topics = Topics(f"scale-{count}")
        serve_stream(bus, topics, 717, 2, samples)
        with scorers(url, topics, count, directory) as children:
            rates.append(await_answers(bus, topics["predictions"], samples, children, skipped=0.5))
    return rates[1] / rates[0]


def memory(bus: Bus, url: str, swaps: int, directory: Path) -> tuple[float, float]:
    """The most megabytes a scorer had in the first half of the swaps, and in the second. In between they go up and down."""
    topics = Topics("swaps")
    serve_stream(bus, topics, 50, 2, 0)
    taken: list[float] = []
    with scorers(url, topics, 1, directory, port=PORT) as [process]:
        for number in range(2, swaps + 2):
            commit(bus, topics, number, 50)
            _await_ready(number)
            taken.append(resident_mb(process.pid))
    return max(taken[: swaps // 2], default=0.0), max(taken[swaps // 2 :], default=0.0)


def large_swap(bus: Bus, url: str, rate: float, directory: Path) -> tuple[float, float]:
    """Seconds from the commit of 717 classes more to their being served, and the longest silence between answers meanwhile."""
    topics = Topics("large")
    serve_stream(bus, topics, 717, 2, 0)
    configure(url, topics["predictions"], {"message.timestamp.type": "LogAppendTime"})
    with scorers(url, topics, 1, directory, port=PORT):
        _await_ready(1)
        process = child("ask", url, topics["samples"], rate, 8.0)
        time.sleep(4.0)
        commit(bus, topics, 2, 717)
        committed = time.time()
        _await_ready(2)
        served = time.time()
        process.wait()
        arrivals = sorted(record.timestamp_ms / 1000 for record in read_whole(bus, topics["predictions"]))
    steady = [moment for moment in arrivals if moment > committed - 1.0]
    return served - committed, max(after - before for before, after in pairwise(steady))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when a figure is short of its bar")
    parser.add_argument("--kafka", metavar="URL", help="use this cluster instead of a broker of our own")
    parser.add_argument("--samples", type=int, default=24_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--swaps", type=int, default=1000)
    given = parser.parse_args()
    short: list[str] = []
    figures: list[str] = []
    alone = {classes: classify_alone(classes, 1) for classes in BARS}
    listed = {classes: classify_alone(classes, CANDIDATES) for classes in BARS}
    print(
        f"classify of {DISTINCT} rows beside its product: "
        + ", ".join(f"{c} classes {alone[c]:.2f} ({listed[c]:.2f} with {CANDIDATES} candidates)" for c in BARS)
    )
    with (
        tempfile.TemporaryDirectory(prefix="cgzsl-bench-") as name,
        kafka_at(given.kafka, Path(name) / "broker", OWN_BROKER) as url,
        connect(url) as bus,
    ):
        directory, rate = Path(name), 0.0
        for classes, bar in BARS.items():
            plain, ours, ratio = throughput(bus, url, classes, given.samples, given.rounds, directory)
            figures.append(f"{classes} classes {ours:,.0f} of {plain:,.0f}/s = {ratio:.2f}")
            print(f"{NUMBERS} numbers, {figures[-1]}", flush=True)
            if ratio < bar:
                short.append(f"{classes} classes: {ratio:.2f} of the bare loop, the bar is {bar}")
            if not rate:  # at once: the machine may be another in a minute
                rate = ours
                all_rounds, bare_rounds = latency(bus, url, rate / 2, directory)
                quiet = _quiet(all_rounds)
                times = _median(quiet or all_rounds)
                told = (
                    f"at {rate / 2:,.0f}/s {times} in {len(quiet)} quiet rounds, {_told(all_rounds)} in all {len(all_rounds)}; "
                    f"the bare loop {_median(_quiet(bare_rounds) or bare_rounds)}, {_told(bare_rounds)} in all"
                )
                print(told, flush=True)
        taken, gap = large_swap(bus, url, rate / 4, directory)
        print(
            f"717 classes served {taken:.2f} s after their commit, longest silence meanwhile {gap * 1000:.0f} ms",
            flush=True,
        )
        scale = two_beside_one(bus, url, given.samples * 3 // 2, directory)
        print(f"two scorers: {scale:.2f} of one", flush=True)
        early, late = memory(bus, url, given.swaps, directory)
    if times.p99 > BAR_P99_MS:
        short.append(f"p99 {times.p99:.1f} ms, the bar is {BAR_P99_MS:g}")
    if late > BAR_GROWTH * early:
        short.append(f"memory grew from {early:.0f} to {late:.0f} MB")
    for classes, ratio in alone.items():
        if ratio > BAR_CLASSIFY:
            short.append(f"classify with {classes} classes: {ratio:.2f} of its product, the bar is {BAR_CLASSIFY}")
    for line in short:
        print(f"SHORT {line}")
    print(
        "; ".join(figures)
        + f"; classify {alone[50]:.2f} and {alone[717]:.2f} of its product "
        + f"({listed[50]:.2f} and {listed[717]:.2f} with {CANDIDATES} candidates); "
        + f"{told}; "
        + f"two scorers {scale:.2f} of one; swap of 717 classes {taken:.2f} s, silence {gap * 1000:.0f} ms; "
        + f"{given.swaps} swaps: at most {early:.0f} MB, then {late:.0f} MB"
    )
    return 1 if given.check and short else 0


if __name__ == "__main__":
    sys.exit(main())
