"""The file of the embedded bus: its tables, its transactions, and SQLite's errors translated into ours.

The row id of a record is its `place`: `partition id << 40 | offset`. So all records are in one B-tree, and reading is
one range scan.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from stream_cgzsl.bus.sqlite.place import network_file_system, writer
from stream_cgzsl.bus.types import TopicPartition
from stream_cgzsl.errors import BusUnavailable, Refused, TopicMissing
from stream_cgzsl.runtime.file_lock import FileLock
from stream_cgzsl.schemas.message import Headers

OFFSET_BITS = 40
MAX_VALUE_BYTES = 64 * 1024 * 1024
_LOCK_SECONDS = 60.0
_JOURNAL = "PRAGMA journal_mode = WAL"

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
CREATE TABLE IF NOT EXISTS topic_ids (topic TEXT PRIMARY KEY, id TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS publishers (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL) WITHOUT ROWID;
"""


class SqliteFile:
    """A bus file, created if it does not exist. Each reader and writer opens its own connection with `open()`."""

    def __init__(self, path: Path, synchronous: str) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        self._synchronous = synchronous
        if not path.parent.is_dir():
            raise BusUnavailable(f"{self.url}: the folder {path.parent} does not exist; create it first")
        network = network_file_system(path.resolve())
        if network is not None:
            raise Refused(
                f"{self.url}: it would be on a network file system ({network}), where processes cannot share an SQLite "
                "file safely; put it on a local disk, or use Kafka"
            )
        lock = FileLock(path, "create")
        try:
            lock.acquire(_LOCK_SECONDS)  # two processes that create it at once would get a locked error
            db = self.open()
            with transaction(db, self.url):
                for statement in _SCHEMA.split(";"):
                    db.execute(statement)
            db.close()
        except OSError as error:
            raise Refused(f"{self.url}: {error}; may this user write to the folder?") from error
        finally:
            lock.release()

    def open(self) -> sqlite3.Connection:
        with translating(self.url):
            db = sqlite3.connect(self.path, timeout=_LOCK_SECONDS, isolation_level=None, check_same_thread=False)
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * MAX_VALUE_BYTES)  # the file may come from someone else
            db.execute("PRAGMA trusted_schema = OFF")  # so its schema must not call functions
            db.execute("PRAGMA page_size = 16384")  # an 8 kB vector fits one page
            (journal,) = db.execute(_JOURNAL).fetchone()
            if journal != "wal":  # SQLite says no more than that
                db.close()
                raise Refused(
                    f"{self.url}: SQLite cannot keep a write-ahead log here (its journal mode is {journal!r}), as on "
                    "some network file systems; put the file on a local disk"
                )
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            db.execute("PRAGMA cache_size = -16000")
        return db


@contextmanager
def transaction(db: sqlite3.Connection, url: str) -> Iterator[sqlite3.Connection]:
    """A write transaction, rolled back if the block raises."""
    try:
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")
    except BaseException as error:
        if db.in_transaction:
            with suppress(sqlite3.Error):  # the first error is the one to raise
                db.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise translate(error, url) from error
        if isinstance(error, UnicodeDecodeError):  # SQLite's message may quote bytes of a damaged file
            raise _damaged(url, str(error)) from error
        raise


@contextmanager
def translating(url: str) -> Iterator[None]:
    """Wraps a read. Values that cannot be unpacked are reported as a damaged file."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, url) from error
    except (struct.error, ValueError, TypeError) as error:  # from unpacking
        raise _damaged(url, str(error)) from error


def _damaged(url: str, text: str) -> Refused:
    return Refused(f"{url}: {text}; the file is damaged, or not one of ours: restore it from a copy")


def translate(error: sqlite3.Error, url: str) -> BusUnavailable | Refused:
    text = str(error)
    if any(sign in text for sign in ("malformed", "too big", "no such column", "has no column", "datatype mismatch")):
        return _damaged(url, text)
    if "readonly" in text or "not a database" in text or "permission" in text.lower():
        return Refused(f"{url}: {text}; is this the right file, and may this user write to it and its folder?")
    advice = {
        "locked": writer(Path(url.removeprefix("sqlite:///"))) or "another process holds the file's write lock",
        "unable to open": "the folder does not exist or is not writable",
        "full": "the disk is full: free some space, nothing acknowledged was lost",
        "disk I/O": "the disk is full, failing or gone: check it, nothing acknowledged was lost",
    }
    hint = next((hint for part, hint in advice.items() if part in text), "the file could not be used")
    return BusUnavailable(f"{url}: {text}; {hint}")


def topic_missing(topic: str, url: str) -> TopicMissing:
    return TopicMissing(f"{url}: there is no topic {topic!r}; create it with: stream-cgzsl topics create --bus {url}")


def partition_id(db: sqlite3.Connection, topic: str, number: int, url: str) -> int:
    row = db.execute("SELECT id FROM partitions WHERE topic = ? AND number = ?", (topic, number)).fetchone()
    if row is None:
        raise topic_missing(topic, url)
    return int(row[0])


def first_offset_at(db: sqlite3.Connection, partition: int, first: int, end: int, timestamp_ms: int) -> int | None:
    """Binary search in the running maximum of the timestamps, which reaches T at the first record of T or later."""
    base = partition << OFFSET_BITS
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
    """The number of names and values, the length of each, then their bytes; None without headers."""
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
