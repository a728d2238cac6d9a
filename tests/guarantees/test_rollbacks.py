"""A rollback is a window that publishes an earlier generation again."""

from __future__ import annotations

import numpy as np
from expiry import expire
from guarded import D, Stream

from stream_cgzsl.serving.generation_io import load_generation


def test_a_rollback_uses_a_snapshot(embedded: Stream) -> None:
    roll_back(embedded, snapshot_every=1)


def test_a_rollback_without_a_snapshot_trains_again(stream: Stream) -> None:
    roll_back(stream, snapshot_every=100)


def roll_back(stream: Stream, snapshot_every: int) -> None:
    """The new generation equals the old one, and later windows continue from it, also after a restart."""
    stream.send_tasks(1, 2)
    stream.learn_until(2, snapshot_every=snapshot_every)
    first = load_generation(stream.bus, stream.topics, stream.ledger()[1])
    assert stream.run("rollback", "1", "--reason=second thoughts")[0] == 0
    log = stream.learn_until(3, snapshot_every=snapshot_every)
    assert log.count("trained again") == (0 if snapshot_every == 1 else 3)  # to 2 at the start, then to 1
    record = stream.ledger()[3]
    assert (record.kind, record.reason, record.to, record.state is None) == ("rollback", "second thoughts", 1, False)
    back = load_generation(stream.bus, stream.topics, record)
    assert (back.class_ids, back.seen.tolist()) == (first.class_ids, first.seen.tolist())
    for name in ("vectors", "biases", "centre"):
        np.testing.assert_array_equal(getattr(back, name), getattr(first, name))
    stream.producer.describe(D)  # which generation 1 does not know
    stream.send_tasks(3)
    stream.learn_until(4, snapshot_every=snapshot_every)
    stream.learn_until(4, snapshot_every=snapshot_every)
    stream.assert_sound(windows=4)


def test_a_rollback_can_be_rolled_back(embedded: Stream) -> None:
    embedded.send_tasks()
    embedded.learn_until(3)
    for number, to in ((4, 1), (5, 3), (6, 4)):
        assert embedded.run("rollback", str(to))[0] == 0
        embedded.learn_until(number)
    assert [record.to for record in embedded.ledger()[4:]] == [1, 3, 4]
    digests = [load_generation(embedded.bus, embedded.topics, r).vectors.tobytes() for r in embedded.ledger()[1:]]
    assert (digests[3], digests[4], digests[5]) == (digests[0], digests[2], digests[0])
    embedded.assert_sound(windows=6)


def test_a_rollback_that_is_impossible_is_a_failed_window_and_the_stream_continues(embedded: Stream) -> None:
    embedded.send_tasks(1, 2)
    embedded.learn_until(2, snapshot_every=2)
    for partition, span in embedded.ledger()[1].ranges["features"].items():
        expire(embedded.bus, embedded.topics["features"], partition, span.end)
    assert embedded.run("rollback", "1")[0] == 0
    embedded.send_tasks(3)
    embedded.learn_until(4, snapshot_every=2)
    failed, after = embedded.ledger()[3:]
    assert (failed.kind, failed.to, after.kind) == ("failed", None, "train")
    assert failed.error is not None and failed.error.startswith("generation 1 cannot be restored: window 1 cannot be")
    assert embedded.check().problems == []


def test_a_rollback_to_a_generation_that_does_not_exist_is_refused(embedded: Stream) -> None:
    embedded.send_tasks(1)
    embedded.learn_until(1)
    code, said = embedded.run("rollback", "2")
    assert (code, "the ledger has 1 to 1" in said) == (2, True)
