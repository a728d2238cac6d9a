"""A window that cannot be trained is committed as failed, once, and the stream goes on."""

from __future__ import annotations

import json

import pytest
from guarded import A, B, Stream, Told
from launcher import Environment, Hook, Point

PAPER = {"hidden": 8, "max_iterations": 4, "batch": 8}


def learn(stream: Stream, until: int, *hooks: Hook, learning_rate: float = 0.01, snapshot_every: int = 1) -> None:
    """With a learner that trains in batches."""
    options = json.dumps({**PAPER, "learning_rate": learning_rate})
    stream.learn_until(
        until, *hooks, Environment(CGZSL_OPTIONS=options), learner="paper", snapshot_every=snapshot_every
    )


def test_weights_that_are_not_finite_are_thrown_away(embedded: Stream) -> None:
    embedded.tell(1)
    learn(embedded, 1)
    embedded.tell(2)
    learn(embedded, 2, learning_rate=1e30)
    embedded.tell(3)
    learn(embedded, 3)
    failed, after = embedded.ledger()[2:]
    assert (failed.kind, after.kind) == ("failed", "train")
    assert failed.error is not None and "not finite" in failed.error
    assert (failed.seen, failed.unseen, after.seen, after.unseen) == (2, 2, 3, 1)  # D is described, C is not learned
    embedded.assert_sound(windows=3)


def test_a_window_that_never_fits_into_memory_fails_once(stream: Stream, undisturbed: list[Told]) -> None:
    stream.tell()
    log = stream.learn_until(3, Point("in train", 2, "memory", times=2))
    failed = stream.ledger()[2]
    assert (failed.kind, failed.error) == ("failed", "MemoryError: there is no room")
    assert log.count("ERROR") == 1
    assert [told[:4] for told in stream.told()] == [
        (number, "failed" if number == 2 else kind, reason, inputs) for number, kind, reason, inputs, _ in undisturbed
    ]
    stream.assert_sound(windows=3)


def test_what_was_not_learned_may_be_sent_again(embedded: Stream) -> None:
    """Ids of a failed window are not remembered; those of a learned one are."""
    embedded.tell(1)
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


def test_a_window_short_of_memory_is_tried_again_with_half_the_batch(embedded: Stream) -> None:
    embedded.tell()
    learn(embedded, 3, Point("in train", 2, "memory"))
    records = embedded.ledger()
    assert [record.kind for record in records[1:]] == ["train"] * 3
    batches = [None if r.configuration is None else r.configuration["options"]["batch"] for r in records]
    assert batches == [8, None, 4, 8]  # the next window has the whole batch again
    embedded.assert_sound(windows=3)


@pytest.mark.parametrize("times", [1, 2])
def test_a_learner_that_starts_anew_knows_how_the_window_went(embedded: Stream, times: int) -> None:
    """Without a snapshot of its own the window is done again as it was done then."""
    embedded.tell(1, 2)
    learn(embedded, 2, Point("in train", 2, "memory", times=times), snapshot_every=100)
    embedded.tell(3)
    learn(embedded, 3)
    assert [record.state is None for record in embedded.ledger()[1:3]] == [True, times == 2]
    embedded.assert_sound(windows=3)
