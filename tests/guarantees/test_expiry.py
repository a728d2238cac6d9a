"""Records that expired before they were learned: a learner refuses to continue, unless the loss is accepted."""

from __future__ import annotations

from expiry import expire
from guarded import A, B, Stream

from stream_cgzsl.history.replay import Verdict


def test_a_learner_skips_expired_records_only_if_the_loss_is_accepted(stream: Stream) -> None:
    stream.send_tasks(1)
    stream.learn_until(1)
    stream.send_tasks(2)
    partition, start = lose(stream, 3)
    log = stream.learn_to_its_end(7)
    assert f"{stream.topics['features']}/{partition} [{start}, {start + 3})" in log and "--accept-loss" in log
    assert len(stream.ledger()) == 2
    stream.send_tasks(3)
    stream.learn_until(3, accept_loss=True)
    span = stream.ledger()[2].ranges["features"][partition]
    assert (span.start, span.lost) == (start + 3, 3)
    assert stream.check().lost == 3
    stream.assert_sound_from(window=2)


def test_an_accepted_loss_works_with_the_event_time_policy(embedded: Stream) -> None:
    """The policy reads the time of the first waiting record, and that record is gone."""
    embedded.send_tasks(1)
    embedded.learn_until(1)
    embedded.producer.teach(A, B, rows=20, purpose=5)
    partition, start = lose(embedded, 2)
    embedded.learn_until(2, accept_loss=True, event_time=1, event_idle=0.5)
    span = embedded.ledger()[2].ranges["features"][partition]
    assert (span.start, span.lost) == (start + 2, 2)
    assert embedded.check().problems == []


def test_windows_that_cannot_be_trained_again_are_rolled_back_if_the_loss_is_accepted(stream: Stream) -> None:
    """No snapshot since window 2, and the records of window 3 have expired."""
    stream.send_tasks()
    stream.learn_until(3, snapshot_every=2)
    partition, span = next((p, s) for p, s in stream.ledger()[3].ranges["features"].items() if s.end > s.start)
    expire(stream.bus, stream.topics["features"], partition, span.end)
    log = stream.learn_to_its_end(7, snapshot_every=2)
    assert f"window 3 cannot be trained again: features/{partition} [{span.start},{span.end}) expired" in log
    stream.learn_until(4, snapshot_every=2, accept_loss=True)
    record = stream.ledger()[4]
    assert (record.kind, record.reason, record.to) == ("rollback", "accept-loss", 2)
    assert stream.check().problems == []
    stream.send_tasks(5)
    stream.learn_until(5)
    assert stream.verdicts()[2:] == [Verdict.NOT_VERIFIABLE, Verdict.IDENTICAL, Verdict.IDENTICAL]


def lose(stream: Stream, count: int) -> tuple[int, int]:
    """Expires the next `count` records to be learned, in a partition where more than that wait."""
    ends = stream.bus.end_offsets(stream.topics["features"])
    spans = stream.ledger()[-1].ranges["features"]
    partition = next(p for p, span in spans.items() if ends[p] - span.end > count)
    expire(stream.bus, stream.topics["features"], partition, spans[partition].end + count)
    return partition, spans[partition].end
