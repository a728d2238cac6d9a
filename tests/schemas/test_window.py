"""What a ledger record says about its window."""

from __future__ import annotations

from typing import Any

import pytest

from stream_cgzsl.schemas import POLICIES, LedgerRecord


def record(**fields: Any) -> LedgerRecord:
    return LedgerRecord(number=1, configuration_digest="0" * 64, code="1", **fields)


@pytest.mark.parametrize("kind", ["train", "rollback"])
def test_the_policy_is_what_closed_the_window_whatever_its_reason(kind: str) -> None:
    assert record(kind=kind, policy="max-age", reason="count").closed_by == "max-age"


@pytest.mark.parametrize("policy", POLICIES)
def test_an_older_record_has_the_policy_as_its_reason(policy: str) -> None:
    assert record(kind="train", reason=policy).closed_by == policy


@pytest.mark.parametrize(("kind", "policy"), [("train", "marker"), ("failed", "marker"), ("rollback", "rollback")])
def test_an_older_record_with_the_words_of_a_person(kind: str, policy: str) -> None:
    assert record(kind=kind, reason="the birds of May").closed_by == policy
