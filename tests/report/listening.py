"""A live page that is being served, and a browser's end of its events without a browser."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

from patience import PATIENCE_SECONDS

from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.report.live import watch

Parts = dict[str, Any]


@contextmanager
def watched(bus_url: str, topics: Topics, port: int = 0, host: str = "127.0.0.1") -> Iterator[str]:
    """The address of a page that follows the stream. Leaving the block ends it and raises what ended it before."""
    stop, ready = threading.Event(), threading.Event()
    addresses: list[str] = []
    errors: list[BaseException] = []

    def serving(url: str) -> None:
        addresses.append(url)
        ready.set()

    def run() -> None:
        try:
            watch(bus_url, topics, host, port, stop, serving)
        except BaseException as error:
            errors.append(error)
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_SECONDS)
    try:
        if addresses:
            yield addresses[0]
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
        if errors:
            raise errors[0]


class Listener:
    """Holds the newest of every part."""

    def __init__(self, url: str) -> None:
        self.parts: Parts = {}
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_SECONDS)
        self._connection.request("GET", "/events")
        self._answer: HTTPResponse = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.status

    def until(self, wanted: Callable[[Parts], bool]) -> Parts:
        """Listens until the parts are as wanted, and returns them."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        name = ""
        while not wanted(self.parts):
            assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:g} s: {self.parts}"
            line = self._answer.readline().decode()
            assert line, "the server has ended the stream"
            field, _, value = line.rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                self.parts[name] = json.loads(value)
        return dict(self.parts)

    def close(self) -> None:
        self._answer.close()  # it has taken the socket over
        self._connection.close()


@contextmanager
def listening(url: str) -> Iterator[Listener]:
    listener = Listener(url)
    try:
        yield listener
    finally:
        listener.close()


def at_window(number: int) -> Callable[[Parts], bool]:
    """The page has heard of this window and of what else came with it."""
    return lambda parts: bool(parts.get("windows")) and parts["windows"][0]["number"] >= number and "lag" in parts
