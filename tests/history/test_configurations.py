"""Which configuration a window was learned with: written to the ledger where it changes, and found again."""

from __future__ import annotations

import pytest
from helpers import TOPICS
from ledgers import genesis_record, window_record

from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.history.publish import configuration_fields
from stream_cgzsl.history.relearn import sharing_inputs
from stream_cgzsl.history.restore import configuration_at
from stream_cgzsl.history.stream_learner import Configuration

OLD, NEW = Configuration("closed-form", {}, 1), Configuration("closed-form", {"rbf": True}, 2)


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


def test_a_window_was_learned_with_the_last_configuration_written_before_it() -> None:
    records = [
        genesis_record(**configuration_fields(OLD, None)),
        window_record(1, **configuration_fields(OLD, OLD)),
        window_record(2, **configuration_fields(NEW, OLD)),
        window_record(3, **configuration_fields(NEW, NEW)),
    ]
    assert [configuration_at(records, number) for number in range(4)] == [OLD, OLD, NEW, NEW]


def test_a_ledger_without_a_configuration_is_broken() -> None:
    with pytest.raises(BrokenLedger, match="no record of the ledger has a configuration"):
        configuration_at([genesis_record()], 0)


def test_a_stream_that_shares_inputs_has_its_own_results() -> None:
    other = sharing_inputs(TOPICS, "other")
    assert {role: other[role] for role in ("features", "control", "windows", "projections")} == {
        "features": "t.features",
        "control": "t.control",
        "windows": "other.windows",
        "projections": "other.projections",
    }
