"""Which configuration a window was learned with: written to the ledger where it changes, and found again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import TOPICS, new_bus, recorded, sqlite_url
from ledgers import genesis_record, window_record, write

from stream_cgzsl.bus import Bus
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.history.publish import configuration_fields
from stream_cgzsl.history.relearn import sharing_inputs
from stream_cgzsl.history.restore import configuration_of
from stream_cgzsl.history.stream_learner import Configuration
from stream_cgzsl.windows.commit import Commit
from stream_cgzsl.windows.recorded import Ledger

OLD, NEW = Configuration("closed-form", {}, 1), Configuration("closed-form", {"rbf": True}, 2)


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with new_bus(sqlite_url(tmp_path)) as bus:
        yield bus


def test_a_configuration_is_written_in_full_only_where_it_changes() -> None:
    assert configuration_fields(NEW, OLD) == {
        "configuration": {"learner": "closed-form", "options": {"rbf": True}, "memory_bytes": 2},
        "configuration_digest": NEW.digest,
    }
    assert configuration_fields(NEW, NEW) == {"configuration": None, "configuration_digest": NEW.digest}


def test_decoders_are_written_only_where_there_are_any() -> None:
    """Digests of streams in our own format stay as they are."""
    other = Configuration("closed-form", {}, 1, {"features": "my:read"})
    assert other.document() == {**OLD.document(), "decoders": {"features": "my:read"}}
    assert Configuration(**other.document()) == other != OLD
    assert "decoders" not in OLD.document()


def test_a_window_was_learned_with_the_last_configuration_written_before_it(bus: Bus) -> None:
    records = [
        genesis_record(**configuration_fields(OLD, None)),
        window_record(1, **configuration_fields(OLD, OLD)),
        window_record(2, **configuration_fields(NEW, OLD)),
        window_record(3, **configuration_fields(NEW, NEW)),
    ]
    for record in records:
        write(bus, Commit(record))
    ledger = recorded(bus)
    assert [configuration_of(ledger, record) for record in ledger.records()] == [OLD, OLD, NEW, NEW]
    assert [configuration_of(ledger, ledger.record(number)) for number in (3, 0, 2, 1)] == [NEW, OLD, NEW, OLD]


def test_a_ledger_without_a_configuration_is_broken(bus: Bus) -> None:
    ledger = Ledger(bus, TOPICS, genesis_record(), genesis_record())
    with pytest.raises(BrokenLedger, match=r"record 0 of t\.windows has no configuration"):
        configuration_of(ledger, ledger.last)


def test_a_stream_that_shares_inputs_has_its_own_results() -> None:
    other = sharing_inputs(TOPICS, "other")
    assert {role: other[role] for role in ("features", "control", "windows", "projections")} == {
        "features": "t.features",
        "control": "t.control",
        "windows": "other.windows",
        "projections": "other.projections",
    }
