"""What every worker process does around its loop: logs a person can read, pages, and a clean end on a signal."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.metrics import Metrics
from stream_cgzsl.settings import Settings
from stream_cgzsl.workers.http import Pages

M = TypeVar("M", bound=Metrics)


class Worker(Protocol):
    def run(self) -> None: ...

    def why_not_ready(self) -> str | None: ...


def start_logging(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", datefmt="%H:%M:%S", force=True
    )
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it tells of every retry; what matters reaches us as errors


def stop_on_signals() -> threading.Event:
    """Set by SIGTERM or Ctrl-C; a second one ends the process at once."""
    stop = threading.Event()

    def handle(number: int, _frame: object) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        logging.getLogger("worker").info("%s: finishing", signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return stop


def serve(
    settings: Settings,
    topics: Topics,
    metrics: M,
    build: Callable[[Bus, Topics, Settings, M, threading.Event], Worker],
) -> None:
    """Runs one worker on the bus of the settings until it is told to stop."""
    start_logging(settings.log_level)
    stop = stop_on_signals()
    with connect(settings.bus) as bus:
        worker = build(bus, topics, settings, metrics, stop)
        pages = None
        if settings.port is not None:
            pages = Pages(settings.host, settings.port, metrics.registry, worker.why_not_ready)
        try:
            worker.run()
        finally:
            if pages is not None:
                pages.close()
