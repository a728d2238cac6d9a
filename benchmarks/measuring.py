"""Shared by the benchmarks: a stopwatch, and a Kafka broker to measure on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

from stream_cgzsl.demo import broker


def seconds(work: Callable[[], object]) -> float:
    """How long `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def peak_memory_of(process: Popen[bytes]) -> float:
    """The most memory a process has had so far, in megabytes; 0 where it has ended."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except FileNotFoundError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)


@contextmanager
def kafka_at(url: str | None, directory: Path, properties: Mapping[str, str] | None = None) -> Iterator[str]:
    """The cluster at `url`; without one, a new broker with these properties and its data in `directory`."""
    if url is not None:
        yield url
        return
    print("starting a Kafka broker ...", file=sys.stderr)
    started = broker.start(directory, properties=properties)
    try:
        yield started.url
    finally:
        started.stop()
