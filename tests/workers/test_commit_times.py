"""A commit that the bus would not wait for is told beforehand."""

from __future__ import annotations

import logging

import pytest

from stream_cgzsl.workers.learner_reporting import CommitTimes


def test_a_commit_that_may_take_too_long_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "learner"):
        assert CommitTimes().warn(2_000_000_000, 120.0)
    assert "2000 MB and may take 200 s; the bus ends it after 120 s" in caplog.text
    assert "?transaction_timeout_ms=" in caplog.text


def test_small_commits_and_buses_without_a_limit_are_not_told() -> None:
    assert not CommitTimes().warn(10_000_000, 120.0)
    assert not CommitTimes().warn(2_000_000_000, None)


def test_large_commits_before_say_how_fast_the_bus_is() -> None:
    times = CommitTimes()
    times.took(1000, 10.0)
    assert times.warn(2_000_000_000, 120.0)
    times.took(100_000_000, 1.0)
    assert not times.warn(2_000_000_000, 120.0)
