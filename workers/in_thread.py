"""A worker as a thread: a run feeds, learns and evaluates in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.workers.process import Worker


class InThread(AbstractContextManager["InThread"]):
    """Runs a worker on its own connection. Leaving the block stops it and waits until it has ended.

    An error that ended it before is raised by `check`, and on leaving the block unless another error is.
    """

    def __init__(self, url: str, build: Callable[[Bus, threading.Event], Worker]) -> None:
        self._url = url
        self._build = build
        self._stop = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)

    def _run(self) -> None:
        try:
            with connect(self._url) as bus:
                self._build(bus, self._stop).run()
        except BaseException as error:
            self._problem = error

    def check(self) -> None:
        """Raises what ended the worker, if anything did."""
        if self._problem is not None:
            raise self._problem

    def __enter__(self) -> InThread:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Tells the worker to stop, without waiting for it."""
        self._stop.set()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        self._thread.join()
        if kind is None:
            self.check()
