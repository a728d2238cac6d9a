"""A window that cannot be trained is committed as failed, once, and the stream continues."""

from __future__ import annotations

import json

import pytest
from guarded import A, B, Result, Stream
from launcher import Environment, Hook, Point

PAPER = {"hidden": 8, "epochs": 1, "batch": 8, "replay": 5}


def learn(stream: Stream, until: int, *hooks: Hook, learning_rate: float = 0.01, snapshot_every: int = 1) -> None:
    """Runs a learner that trains in batches."""
    options = json.dumps({**PAPER, "learning_rate": learning_rate})
    stream.learn_until(
        until, *hooks, Environment(CGZSL_OPTIONS=options), learner="paper", snapshot_every=snapshot_every
    )


def test_weights_that_are_not_finite_are_discarded(embedded: Stream) -> None:
    embedded.send_tasks(1)
    learn(embedded, 1)
    embedded.send_tasks(2)
    learn(embedded, 2, learning_rate=1e30)
    embedded.send_tasks(3)
    learn(embedded, 3)
    failed, after = embedded.ledger()[2:]
    assert (failed.kind, after.kind) == ("failed", "train")
    assert failed.error is not None and "not finite" in failed.error
    assert (failed.seen, failed.unseen, after.seen, after.unseen) == (2, 2, 3, 1)  # D is described, C is not learned
    embedded.assert_sound(windows=3)


def test_a_window_that_does_not_fit_into_memory_fails_once(stream: Stream, undisturbed: list[Result]) -> None:
    stream.send_tasks()
    log = stream.learn_until(3, Point("in train", 2, "memory", times=2))
    failed = stream.ledger()[2]
    assert (failed.kind, failed.error) == ("failed", "MemoryError: out of memory")
    assert log.count("ERROR") == 1
    assert [result[:4] for result in stream.results()] == [
        (number, "failed" if number == 2 else kind, reason, inputs) for number, kind, reason, inputs, _ in undisturbed
    ]
    stream.assert_sound(windows=3)


def test_records_of_a_failed_window_may_be_sent_again(embedded: Stream) -> None:
    """Ids of a failed window are not remembered; ids of a learned one are."""
    embedded.send_tasks(1)
    embedded.learn_until(1, Point("in train", 1, "memory"))
    embedded.producer.teach(A, B, rows=12)
    embedded.producer.boundary("again")
    embedded.producer.teach(A, B, rows=12)
    embedded.producer.boundary("and again")
    embedded.learn_until(3)
    spans = [record.ranges["features"].values() for record in embedded.ledger()[1:]]
    assert [(sum(s.accepted for s in given), sum(s.duplicate for s in given)) for given in spans] == [
        (24, 0),
        (24, 0),
        (0, 24),
    ]


def test_a_window_that_runs_out_of_memory_is_tried_again_with_half_the_batch(embedded: Stream) -> None:
    embedded.send_tasks()
    learn(embedded, 3, Point("in train", 2, "memory"))
    records = embedded.ledger()
    assert [record.kind for record in records[1:]] == ["train"] * 3
    batches = [None if r.configuration is None else r.configuration["options"]["batch"] for r in records]
    assert batches == [8, None, 4, 8]  # the next window has the full batch again
    embedded.assert_sound(windows=3)


@pytest.mark.parametrize("times", [1, 2])
def test_a_restarted_learner_repeats_what_happened_to_the_window(embedded: Stream, times: int) -> None:
    """Without a snapshot the window is applied again, with the same batch or as failed again."""
    embedded.send_tasks(1, 2)
    learn(embedded, 2, Point("in train", 2, "memory", times=times), snapshot_every=100)
    embedded.send_tasks(3)
    learn(embedded, 3)
    assert [record.state is None for record in embedded.ledger()[1:3]] == [True, times == 2]
    embedded.assert_sound(windows=3)
