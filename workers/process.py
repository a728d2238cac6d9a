"""What every worker process does around its loop: readable logs, HTTP pages, and a clean stop on a signal."""

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
from stream_cgzsl.runtime.metrics import Metrics
from stream_cgzsl.runtime.settings import Settings
from stream_cgzsl.workers.http import Pages

log = logging.getLogger("worker")

M = TypeVar("M", bound=Metrics)

PARENT_VARIABLE = "CGZSL_PARENT"
"""The process id of the parent; the worker stops when that process is gone."""


class Worker(Protocol):
    def run(self) -> None: ...

    def why_not_ready(self) -> str | None: ...


def start_logging(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", datefmt="%H:%M:%S", force=True
    )
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it logs every retry; what matters is raised


def stop_on_signals() -> threading.Event:
    """An event that is set by SIGTERM, by Ctrl-C, or when the parent process is gone.

    A second signal ends the process at once. Signals are handled by a thread: a handler that sets an event could
    deadlock when the main thread holds the lock inside that event.
    """
    stop = threading.Event()
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    threading.Thread(target=_handle_signals, args=(read_end, stop), name="signals", daemon=True).start()
    parent = os.environ.get(PARENT_VARIABLE)
    if parent is not None:
        threading.Thread(target=_watch_parent, args=(int(parent), stop), name="parent", daemon=True).start()
    return stop


def _handle_signals(read_end: int, stop: threading.Event) -> None:
    number = os.read(read_end, 1)[0]
    log.info("%s: finishing", signal.Signals(number).name)
    stop.set()
    os._exit(128 + os.read(read_end, 1)[0])


def _watch_parent(parent: int, stop: threading.Event) -> None:
    while not stop.wait(1.0):
        if os.getppid() != parent:
            log.warning("the process that started this one is gone: finishing")
            stop.set()


def serve(
    settings: Settings, topics: Topics, metrics: M, build: Callable[[Bus, Topics, Settings, M, threading.Event], Worker]
) -> None:
    """Runs one worker on the bus of the settings until it is stopped."""
    start_logging(settings.log_level)
    stop = stop_on_signals()
    with connect(settings.bus) as bus:
        worker = build(bus, topics, settings, metrics, stop)
        log.info("records go through %s", bus.client)
        metrics.connected(bus.client)
        metrics.ready.set_function(lambda: float(worker.why_not_ready() is None))
        pages = None
        if settings.port is not None:
            pages = Pages(settings.host, settings.port, metrics.registry, worker.why_not_ready)
        _reduce_garbage_collection()
        try:
            worker.run()
        finally:
            if pages is not None:
                pages.close()


def _reduce_garbage_collection() -> None:
    """Objects that exist at the start stay: each full collection over them would pause the worker for 0.1 s."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
