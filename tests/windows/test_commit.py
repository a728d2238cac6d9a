"""A commit becomes visible completely or not at all, with the ledger record as its last part."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers import TOPICS, new_bus, read, sqlite_url
from ledgers import genesis_record, window_record, write

from stream_cgzsl.bus import Bus
from stream_cgzsl.errors import Fenced
from stream_cgzsl.schemas import CHUNK_BYTES, Message, Published
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.commit import Commit, write_commit

PROJECTIONS = [Message(b"a", b"1"), Message(b"b", b"22"), Message(b"c", b"333")]
LETTER = Message(b"k", b"v", (("h", b"1"),))


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path), 2) as bus:
        yield bus


def counts(bus: Bus) -> dict[str, int]:
    return {role: len(read(bus, TOPICS[role])) for role in ("windows", "projections", "state", "dead-letters")}


def test_a_commit_is_read_back_as_it_was_written(bus: Bus) -> None:
    state = np.random.default_rng(0).bytes(2 * CHUNK_BYTES + 1)
    written = write(bus, Commit(window_record(), PROJECTIONS, ["z", "y"], state, [LETTER]))
    assert ledger.read_last(bus, TOPICS)[0] == written
    assert ledger.load_state(bus, TOPICS, written) == state
    assert written.projections == Published(first=2, end=5, count=3, sha256=hashlib.sha256(b"122333").hexdigest())
    assert written.state == Published(first=0, end=3, count=3, sha256=hashlib.sha256(state).hexdigest())
    assert [(r.key, r.value or None) for r in read(bus, TOPICS["projections"])] == [
        (b"y", None),  # what is withdrawn comes first
        (b"z", None),
        *((message.key, message.value) for message in PROJECTIONS),
    ]
    assert [(r.key, r.value, r.headers) for r in read(bus, TOPICS["dead-letters"])] == [LETTER[:3]]
    assert counts(bus) == {"windows": 1, "projections": 5, "state": 3, "dead-letters": 1}


def test_a_window_that_makes_no_generation_writes_only_its_record(bus: Bus) -> None:
    written = write(bus, Commit(genesis_record()))
    assert written == genesis_record()
    assert counts(bus) == {"windows": 1, "projections": 0, "state": 0, "dead-letters": 0}


def test_a_generation_without_classes_is_a_place_without_records(bus: Bus) -> None:
    empty = Published(first=0, end=0, count=0, sha256=hashlib.sha256().hexdigest())
    assert write(bus, Commit(window_record(), [])).projections == empty


def test_consumed_offsets_are_committed_for_lag_tools(bus: Bus) -> None:
    write(bus, Commit(window_record(3)))
    assert {role: bus.committed("t.learner", TOPICS[role]) for role in ("attributes", "features", "control")} == {
        "attributes": {0: 3, 1: 0},
        "features": {0: 30, 1: 0},
        "control": {0: 3},
    }


def test_a_commit_that_fails_halfway_shows_nothing_and_the_next_one_works(bus: Bus) -> None:
    def failing() -> Iterator[Message]:
        yield LETTER
        raise RuntimeError("halfway")

    with bus.publisher("t.learner") as publisher:
        with pytest.raises(RuntimeError, match="halfway"):
            write_commit(publisher, TOPICS, Commit(window_record(), PROJECTIONS, (), b"state", failing()))
        assert counts(bus) == {"windows": 0, "projections": 0, "state": 0, "dead-letters": 0}
        write_commit(publisher, TOPICS, Commit(window_record(), PROJECTIONS, (), b"state", [LETTER]))
    assert counts(bus) == {"windows": 1, "projections": 3, "state": 1, "dead-letters": 1}


def test_a_replaced_learner_can_commit_nothing(bus: Bus) -> None:
    with bus.publisher("t.learner") as older, bus.publisher("t.learner") as newer:
        with pytest.raises(Fenced):
            write_commit(older, TOPICS, Commit(window_record(), PROJECTIONS))
        write_commit(newer, TOPICS, Commit(window_record(), PROJECTIONS[:2]))
    assert counts(bus) == {"windows": 1, "projections": 2, "state": 0, "dead-letters": 0}
