"""Records that expired before they were learned: refused with the numbers, or given up on purpose and written down."""

from __future__ import annotations

from altering import expire
from guarded import A, B, Stream

from stream_cgzsl.windows.replay import Verdict


def test_a_learner_refuses_to_jump_over_records_nobody_learned_unless_it_is_told_to(stream: Stream) -> None:
    stream.tell(1)
    stream.learn_until(1)
    stream.tell(2)
    partition, start = lose(stream, 3)
    log = stream.learn_to_its_end(7)
    assert f"{stream.topics['features']}/{partition} [{start}, {start + 3})" in log and "--accept-loss" in log
    assert len(stream.ledger()) == 2
    stream.tell(3)
    stream.learn_until(3, accept_loss=True)
    span = stream.ledger()[2].ranges["features"][partition]
    assert (span.start, span.lost) == (start + 3, 3)
    assert stream.check().lost == 3
    stream.assert_sound_from(window=2)


def test_a_loss_is_accepted_by_every_policy(embedded: Stream) -> None:
    """The time of the first waiting record is asked for, and that record is gone."""
    embedded.tell(1)
    embedded.learn_until(1)
    embedded.producer.teach(A, B, rows=20, purpose=5)
    partition, start = lose(embedded, 2)
    embedded.learn_until(2, accept_loss=True, event_time=1, event_idle=0.5)
    span = embedded.ledger()[2].ranges["features"][partition]
    assert (span.start, span.lost) == (start + 2, 2)
    assert embedded.check().problems == []


def test_records_that_must_be_trained_again_and_are_gone_are_refused(stream: Stream) -> None:
    """No snapshot since window 2, and the records of window 3 have expired."""
    stream.tell()
    stream.learn_until(3, snapshot_every=2)
    partition, span = next((p, s) for p, s in stream.ledger()[3].ranges["features"].items() if s.end > s.start)
    expire(stream.bus, stream.topics["features"], partition, span.end)
    log = stream.learn_to_its_end(7, snapshot_every=2)
    assert f"window 3 cannot be trained again: features/{partition} [{span.start},{span.end}) expired" in log
    stream.learn_until(4, snapshot_every=2, accept_loss=True)
    record = stream.ledger()[4]
    assert (record.kind, record.reason, record.to) == ("rollback", "accept-loss", 2)
    assert stream.check().problems == []
    stream.tell(5)
    stream.learn_until(5)
    assert stream.verdicts()[2:] == [Verdict.NOT_VERIFIABLE, Verdict.IDENTICAL, Verdict.IDENTICAL]


def lose(stream: Stream, count: int) -> tuple[int, int]:
    """The next `count` records to be learned expire, in a partition that has more than that waiting."""
    ends = stream.bus.end_offsets(stream.topics["features"])
    spans = stream.ledger()[-1].ranges["features"]
    partition = next(p for p, span in spans.items() if ends[p] - span.end > count)
    expire(stream.bus, stream.topics["features"], partition, spans[partition].end + count)
    return partition, spans[partition].end
