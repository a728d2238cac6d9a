"""Following a stream for its page: one reader, whatever the number of browsers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress

from stream_cgzsl import __version__
from stream_cgzsl.bus import Bus, Record, access, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import CgzslError, UsageError
from stream_cgzsl.report.live.board import LETTERS, PREDICTIONS, WINDOWS, Board
from stream_cgzsl.report.live.lag import lag
from stream_cgzsl.report.live.parts import Parts
from stream_cgzsl.report.live.server import LiveServer
from stream_cgzsl.report.live.tail import Tail
from stream_cgzsl.schemas import InvalidEvent, LedgerRecord, decode
from stream_cgzsl.windows import ledger

log = logging.getLogger("watch")

_KEPT = {"windows": WINDOWS, "evaluations": WINDOWS, "predictions": PREDICTIONS, "dead-letters": LETTERS}
_ROOM = 3  # offsets a record may take: itself, and the marks of its transaction and of aborted ones
_POLL_SECONDS = 0.5
_PAUSE_SECONDS = 0.3  # between two changes of the page: thousands of answers a second are no reason to draw more often
_LOOK_SECONDS = 2.0
_RETRY_SECONDS = 3.0


def watch(
    url: str,
    topics: Topics,
    host: str,
    port: int,
    stop: threading.Event,
    serving: Callable[[str], None] = lambda _: None,
) -> None:
    """Serves the page until `stop`. `serving` is told its address. Raises `UsageError` where it cannot be served.

    A bus that is away or lacks a topic is told on the page and asked again: who watches wants to see it come back.
    """
    parts = Parts()
    parts.put(stream=_stream(topics, None), status=_status("connecting"))
    with closing(LiveServer(host, port, parts)) as server:
        serving(server.url)
        told = ""
        while not stop.is_set():
            try:
                with connect(url) as bus:
                    _follow(bus, topics, parts, stop)
            except UsageError:
                raise
            except CgzslError as error:
                if str(error) != told:  # once is enough for the log; the page shows it as long as it lasts
                    log.warning("%s; trying again every %g s", error, _RETRY_SECONDS)
                told = str(error)
                parts.put(status=_status("away", told))
                stop.wait(_RETRY_SECONDS)


def _follow(bus: Bus, topics: Topics, parts: Parts, stop: threading.Event) -> None:
    """From the newest records there are until `stop`, or until the bus is away."""
    access.require(bus, topics, "watcher")
    roles = {topics[role]: role for role in _KEPT}
    board, tried, looked, looks = Board(), -1, 0.0, 0
    with closing(Tail(bus, {topics[role]: keep * _ROOM for role, keep in _KEPT.items()})) as tail:
        parts.put(stream=_stream(topics, bus.url))
        while not stop.is_set():
            records = tail.poll(_POLL_SECONDS)
            for record in records:
                _take(board, roles[record.topic], record)
            if board.newest is not None and board.newest.number != tried:
                tried = board.newest.number
                _take_generation(bus, topics, board, board.newest)
            if records or not looked:
                parts.put(**board.parts())
                stop.wait(_PAUSE_SECONDS)
            if time.monotonic() - looked >= _LOOK_SECONDS:
                looked, looks = time.monotonic(), looks + 1
                tail.catch_up()
                parts.put(lag=lag(bus, topics, board.newest, board.evaluated), status=_status("following", looks=looks))


def _take(board: Board, role: str, record: Record) -> None:
    """What cannot be read is passed over: a page is no place to stop for it, and `check` finds it."""
    with suppress(InvalidEvent):
        board.take(decode(role, record.key, record.value, record.headers), record.timestamp_ms)


def _take_generation(bus: Bus, topics: Topics, board: Board, record: LedgerRecord) -> None:
    if record.generation is None:
        return
    try:
        board.classes.take(ledger.load_generation(bus, topics, record))
    except ledger.Incomplete as reason:
        log.info("generation %d was replaced while it was loaded (%s); the next one follows", record.number, reason)


def _stream(topics: Topics, bus: str | None) -> dict[str, str | None]:
    return {"prefix": topics.prefix, "bus": bus, "version": __version__}


def _status(state: str, problem: str | None = None, looks: int = 0) -> dict[str, str | int | None]:
    """`looks` counts how often the bus has answered: a page that sees it stand still knows before any time limit does."""
    return {"state": state, "problem": problem, "looks": looks}
