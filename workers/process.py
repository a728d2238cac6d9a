"""What every worker process does around its loop: logs a person can read, pages, and a clean end on a signal."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.metrics import Metrics
from stream_cgzsl.settings import Settings
from stream_cgzsl.workers.http import Pages

log = logging.getLogger("worker")

M = TypeVar("M", bound=Metrics)

PARENT_VARIABLE = "CGZSL_PARENT"
"""Names the process without which a worker should not go on."""


class Worker(Protocol):
    def run(self) -> None: ...

    def why_not_ready(self) -> str | None: ...


def start_logging(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", datefmt="%H:%M:%S", force=True
    )
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it tells of every retry; what matters reaches us as errors


def stop_on_signals() -> threading.Event:
    """Set by SIGTERM, by Ctrl-C, or when the process that started this one as a part of itself is gone.

    A second signal ends the process at once. Signals are taken by a thread: a handler that sets an event could find
    the main thread inside that very event, and wait for ever.
    """
    stop = threading.Event()
    taken, given = os.pipe()
    os.set_blocking(given, False)
    signal.set_wakeup_fd(given)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    threading.Thread(target=_take_signals, args=(taken, stop), name="signals", daemon=True).start()
    parent = os.environ.get(PARENT_VARIABLE)
    if parent is not None:
        threading.Thread(target=_watch_parent, args=(int(parent), stop), name="parent", daemon=True).start()
    return stop


def _take_signals(taken: int, stop: threading.Event) -> None:
    number = os.read(taken, 1)[0]
    log.info("%s: finishing", signal.Signals(number).name)
    stop.set()
    os._exit(128 + os.read(taken, 1)[0])


def _watch_parent(parent: int, stop: threading.Event) -> None:
    while not stop.wait(1.0):
        if os.getppid() != parent:
            log.warning("the process that started this one is gone: finishing")
            stop.set()


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
        metrics.ready.set_function(lambda: float(worker.why_not_ready() is None))
        pages = None
        if settings.port is not None:
            pages = Pages(settings.host, settings.port, metrics.registry, worker.why_not_ready)
        _collect_seldom()
        try:
            worker.run()
        finally:
            if pages is not None:
                pages.close()


def _collect_seldom() -> None:
    """What is there when a worker starts stays: looking through it again and again stops all for a tenth of a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
