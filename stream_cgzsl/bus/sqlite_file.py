"""The file behind the embedded bus: its tables, its transactions, and what SQLite's errors mean to a person.

A record's place is its row id: `partition id << 40 | offset`. One B-tree holds everything, a read is one range scan.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from stream_cgzsl.bus.file_lock import FileLock
from stream_cgzsl.bus.interface import TopicPartition
from stream_cgzsl.errors import BusUnavailable, Refused, TopicMissing
from stream_cgzsl.schemas.message import Headers

OFFSET_BITS = 40
MAX_VALUE_BYTES = 64 * 1024 * 1024
_LOCK_SECONDS = 60.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS topics (name TEXT PRIMARY KEY, partitions INTEGER NOT NULL, cleanup TEXT NOT NULL,
    settings TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS partitions (id INTEGER PRIMARY KEY, topic TEXT NOT NULL, number INTEGER NOT NULL,
    first INTEGER NOT NULL DEFAULT 0, next INTEGER NOT NULL DEFAULT 0, latest_ms INTEGER NOT NULL DEFAULT -1,
    UNIQUE (topic, number));
CREATE TABLE IF NOT EXISTS records (place INTEGER PRIMARY KEY, ms INTEGER NOT NULL, latest_ms INTEGER NOT NULL,
    key BLOB, headers BLOB, value BLOB);
CREATE TABLE IF NOT EXISTS committed (grp TEXT, topic TEXT, partition INTEGER, next INTEGER NOT NULL,
    PRIMARY KEY (grp, topic, partition)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS publishers (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL) WITHOUT ROWID;
"""


class SqliteFile:
    """A bus file, made when it is not there. `open()` gives each reader and writer a connection of its own."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        self._synchronous = synchronous
        if not path.parent.is_dir():
            raise BusUnavailable(f"{self.url}: the folder {path.parent} does not exist; make it first")
        lock = FileLock(path, "create")
        try:
            lock.acquire(_LOCK_SECONDS)  # two processes that make one file at once would find it locked
            db = self.open()
            with writing(db, self.url):
                for statement in _SCHEMA.split(";"):
                    db.execute(statement)
            db.close()
        except OSError as error:
            raise Refused(f"{self.url}: {error}; may this user write to the folder?") from error
        finally:
            lock.release()

    def open(self) -> sqlite3.Connection:
        with reading(self.url):
            db = sqlite3.connect(self.path, timeout=_LOCK_SECONDS, isolation_level=None, check_same_thread=False)
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * MAX_VALUE_BYTES)  # the file may be one that someone gave us
            db.execute("PRAGMA trusted_schema = OFF")  # and its schema must not call functions
            db.execute("PRAGMA page_size = 16384")  # an 8 kB vector in one page instead of a chain of small ones
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            db.execute("PRAGMA cache_size = -16000")
        return db


@contextmanager
def writing(db: sqlite3.Connection, url: str) -> Iterator[sqlite3.Connection]:
    """One write transaction: all of it, or nothing of it."""
    try:
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")
    except BaseException as error:
        if db.in_transaction:
            with suppress(sqlite3.Error):  # the error that brought us here is the one to tell
                db.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise translated(error, url) from error
        if isinstance(error, UnicodeDecodeError):  # what SQLite says of a damaged file may quote it
            raise _damaged(url, str(error)) from error
        raise


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Around a read: a file that is not what it should be is called that."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, url) from error
    except (struct.error, ValueError, TypeError) as error:  # what our own packing can come across
        raise _damaged(url, str(error)) from error


def _damaged(url: str, text: str) -> Refused:
    return Refused(f"{url}: {text}; the file is damaged, or not one of ours: restore it from a copy")


def translated(error: sqlite3.Error, url: str) -> BusUnavailable | Refused:
    text = str(error)
    if any(sign in text for sign in ("malformed", "too big", "no such column", "has no column", "datatype mismatch")):
        return _damaged(url, text)
    if "readonly" in text or "not a database" in text or "permission" in text.lower():
        return Refused(f"{url}: {text}; is this the right file, and may this user write to it and its folder?")
    advice = {
        "locked": "another process holds the file's write lock; end it, or wait",
        "unable to open": "the folder does not exist or is not writable",
        "full": "the disk is full: free some space, nothing acknowledged was lost",
        "disk I/O": "the disk is full, failing or gone: look after it, nothing acknowledged was lost",
    }
    hint = next((hint for part, hint in advice.items() if part in text), "the file could not be used")
    return BusUnavailable(f"{url}: {text}; {hint}")


def missing(topic: str, url: str) -> TopicMissing:
    return TopicMissing(f"{url}: there is no topic {topic!r}; create it with: stream-cgzsl topics create --bus {url}")


def partition_id(db: sqlite3.Connection, topic: str, number: int, url: str) -> int:
    row = db.execute("SELECT id FROM partitions WHERE topic = ? AND number = ?", (topic, number)).fetchone()
    if row is None:
        raise missing(topic, url)
    return int(row[0])


def first_at(db: sqlite3.Connection, number: int, first: int, end: int, timestamp_ms: int) -> int | None:
    """Binary search: the running maximum of the times never falls, and first reaches T at the first record of T or later."""
    base = number << OFFSET_BITS
    query = "SELECT place, latest_ms FROM records WHERE place >= ? AND place < ? ORDER BY place LIMIT 1"
    low, high = base + first, base + end
    found: int | None = None
    while low < high:
        middle = (low + high) // 2
        row = db.execute(query, (middle, high)).fetchone()
        if row is None:
            high = middle
        elif row[1] >= timestamp_ms:
            found, high = row[0], middle
        else:
            low = row[0] + 1
    return None if found is None else found - base


def commit_offsets(db: sqlite3.Connection, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    rows = [(group, tp.topic, tp.partition, offset) for tp, offset in offsets.items()]
    db.executemany("INSERT OR REPLACE INTO committed VALUES (?, ?, ?, ?)", rows)


def pack_headers(headers: Headers) -> bytes | None:
    """Their number, the lengths of names and values, then all of these; nothing at all for no headers."""
    if not headers:
        return None
    pieces = [piece for name, value in headers for piece in (name.encode(), value)]
    return struct.pack(f"<I{len(pieces)}I", len(pieces), *map(len, pieces)) + b"".join(pieces)


def unpack_headers(packed: bytes | None) -> Headers:
    if not packed:
        return ()
    (count,) = struct.unpack_from("<I", packed)
    at = 4 + 4 * count
    pieces = []
    for length in struct.unpack_from(f"<{count}I", packed, 4):
        pieces.append(packed[at : at + length])
        at += length
    return tuple((name.decode(), value) for name, value in zip(pieces[::2], pieces[1::2], strict=True))
