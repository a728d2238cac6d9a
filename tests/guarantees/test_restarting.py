"""Restarting: the learner restores the last snapshot and trains the windows since then again, to the same digests."""

from __future__ import annotations

from pathlib import Path

from altering import altered, edited
from guarded import Result, Stream

from stream_cgzsl.bus import Record
from stream_cgzsl.history.replay import Verdict


def test_windows_since_the_snapshot_are_trained_again_with_the_same_result(
    stream: Stream, undisturbed: list[Result]
) -> None:
    stream.send_tasks(1, 2)
    stream.learn_until(2, snapshot_every=5)
    stream.send_tasks(3)
    log = stream.learn_until(3, snapshot_every=5)
    assert [line.partition("learner: ")[2] for line in log.splitlines() if "learner: at" in line] == [
        "at window 2 with 4 classes; waiting for events"
    ]
    assert log.count("trained again") == 2
    assert stream.results() == undisturbed
    assert [record.state is None for record in stream.ledger()[1:]] == [True, True, True]


def test_every_kth_window_has_a_snapshot_and_a_restart_uses_the_last(
    embedded: Stream, undisturbed: list[Result]
) -> None:
    embedded.send_tasks()
    embedded.learn_until(3, snapshot_every=2)
    assert [record.state is None for record in embedded.ledger()[1:]] == [True, False, True]
    log = embedded.learn_until(3, snapshot_every=2)
    assert "window 3 trained again: " + (undisturbed[2][4] or "")[:12] in log
    assert log.count("trained again") == 1


def test_a_digest_that_is_not_reproducible_is_refused_unless_it_is_accepted(embedded: Stream, tmp_path: Path) -> None:
    """The ledger has another digest for window 2 than its records lead to."""

    def change(role: str, record: Record) -> Record:
        return edited(role, record, generation="0" * 64) if role == "windows" and record.key == b"2" else record

    embedded.send_tasks()
    embedded.learn_until(3, snapshot_every=100)
    copy = altered(embedded, tmp_path / "copy.db", change)
    log = copy.learn_to_its_end(8, snapshot_every=100)
    assert "window 2, trained again, gave generation" in log and "--rebuild" in log
    copy.learn_until(4, snapshot_every=100, rebuild=True)
    rebuilt = copy.ledger()[4]
    assert (rebuilt.kind, rebuilt.reason, rebuilt.state is None) == ("describe", "rebuild", False)
    log = copy.learn_until(4, snapshot_every=100)
    assert "trained again" not in log
    assert copy.verdicts() == [Verdict.IDENTICAL, Verdict.DIFFERENT, Verdict.IDENTICAL, Verdict.IDENTICAL]


def test_a_rebuild_trains_every_window_again_and_is_in_the_ledger(stream: Stream) -> None:
    stream.send_tasks()
    stream.learn_until(3)
    log = stream.learn_until(4, rebuild=True)
    assert log.count("trained again") == 3
    assert [record.reason for record in stream.ledger()[1:]] == ["task 1", "task 2", "task 3", "rebuild"]
    stream.assert_sound(windows=4)


def test_settings_may_change_between_two_windows(embedded: Stream) -> None:
    """Each window is replayed with the settings it was learned with."""
    embedded.send_tasks(1)
    embedded.learn_until(1, options="rbf=true")
    embedded.send_tasks(2)
    embedded.learn_until(2, options="rbf=false")
    embedded.send_tasks(3)
    embedded.learn_until(3, options="rbf=false", snapshot_every=100)
    configured = [record.configuration for record in embedded.ledger()]
    assert [None if c is None else c["options"] for c in configured] == [{"rbf": True}, None, {"rbf": False}, None]
    embedded.assert_sound(windows=3)


def test_another_kind_of_learner_cannot_continue(embedded: Stream) -> None:
    embedded.send_tasks(1)
    embedded.learn_until(1)
    log = embedded.learn_to_its_end(2, learner="ridge")
    assert "cannot continue from there" in log and len(embedded.ledger()) == 2
