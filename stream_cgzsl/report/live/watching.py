"""Follows a stream for its live page: one reader, however many browsers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress

from stream_cgzsl.bus import Bus, Record, acls, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import CgzslError, UsageError
from stream_cgzsl.report.live.board import DEAD_LETTERS, PREDICTIONS, WINDOWS, Board
from stream_cgzsl.report.live.lag import lag
from stream_cgzsl.report.live.parts import Parts
from stream_cgzsl.report.live.server import LiveServer
from stream_cgzsl.report.live.tail import Tail
from stream_cgzsl.schemas import InvalidEvent, LedgerRecord, decode
from stream_cgzsl.serving.generation_io import GenerationLoader
from stream_cgzsl.version import __version__
from stream_cgzsl.windows import ledger

log = logging.getLogger("watch")

_KEPT = {"windows": WINDOWS, "evaluations": WINDOWS, "predictions": PREDICTIONS, "dead-letters": DEAD_LETTERS}
_OFFSETS_PER_RECORD = 3  # the record, and the control records of its transaction and of aborted ones
_POLL_SECONDS = 0.5
_PAUSE_SECONDS = 0.3  # between two updates of the page, however many records there are
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
    """Serves the page until `stop`. `serving` is called with its address. Raises `UsageError` if it cannot be served.

    If the bus is unavailable or lacks a topic, the page says so, and the bus is retried.
    """
    parts = Parts()
    parts.put(stream=_stream(topics, None), status=_status("connecting"))
    with closing(LiveServer(host, port, parts)) as server:
        serving(server.url)
        logged = ""
        while not stop.is_set():
            try:
                with connect(url) as bus:
                    _follow(bus, topics, parts, stop)
            except UsageError:
                raise
            except CgzslError as error:
                if str(error) != logged:  # log it once; the page shows it as long as it lasts
                    log.warning("%s; retrying every %g s", error, _RETRY_SECONDS)
                logged = str(error)
                parts.put(status=_status("away", logged))
                stop.wait(_RETRY_SECONDS)


def _follow(bus: Bus, topics: Topics, parts: Parts, stop: threading.Event) -> None:
    """Follows from the newest records until `stop`, or until the bus is unavailable."""
    acls.require(bus, topics, "watcher")
    roles = {topics[role]: role for role in _KEPT}
    board, tried, looked, looks = Board(), -1, 0.0, 0
    loader = GenerationLoader(bus, topics)
    with closing(Tail(bus, {topics[role]: keep * _OFFSETS_PER_RECORD for role, keep in _KEPT.items()})) as tail:
        parts.put(stream=_stream(topics, bus.url))
        while not stop.is_set():
            records = tail.poll(_POLL_SECONDS)
            for record in records:
                _add(board, roles[record.topic], record)
            if board.newest is not None and board.newest.number != tried:
                tried = board.newest.number
                _update_classes(loader, board, board.newest)
            if records or not looked:
                parts.put(**board.parts())
                stop.wait(_PAUSE_SECONDS)
            if time.monotonic() - looked >= _LOOK_SECONDS:
                looked, looks = time.monotonic(), looks + 1
                tail.catch_up()
                parts.put(lag=lag(bus, topics, board.newest, board.evaluated), status=_status("following", looks=looks))


def _add(board: Board, role: str, record: Record) -> None:
    """Skips records that cannot be decoded: `check` reports them."""
    with suppress(InvalidEvent):
        board.add(decode(role, record.key, record.value, record.headers), record.timestamp_ms)


def _update_classes(loader: GenerationLoader, board: Board, record: LedgerRecord) -> None:
    if record.generation is None:
        return
    try:
        board.classes.update(loader.load(record))
    except ledger.Incomplete as reason:
        log.info("generation %d was replaced while it was loaded (%s); the next one follows", record.number, reason)


def _stream(topics: Topics, bus: str | None) -> dict[str, str | None]:
    return {"prefix": topics.prefix, "bus": bus, "version": __version__}


def _status(state: str, problem: str | None = None, looks: int = 0) -> dict[str, str | int | None]:
    """`looks` counts the answers of the bus: if it does not change, the page knows that the bus is unavailable."""
    return {"state": state, "problem": problem, "looks": looks}
