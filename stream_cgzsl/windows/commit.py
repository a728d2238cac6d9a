"""Writing a window: everything it changes becomes visible in one transaction, with the ledger record last."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from stream_cgzsl.bus import Publisher, Receipt, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable, Fenced
from stream_cgzsl.schemas import (
    CHUNK_BYTES,
    ENCODER_KEY,
    EncoderChunk,
    LedgerRecord,
    Message,
    Published,
    StateChunk,
    Update,
    Withdrawal,
    encode,
)


@dataclass(frozen=True)
class Commit:
    """All that window `record.number` publishes. `record` still lacks the offsets, which are known only on the way.

    `projections` is one message per class, in the order of class ids; None when the window makes no generation.
    `withdrawn` are the classes that are no longer recognised, `encoder` the numbers of an encoder, if there is one.
    With `update`, what the generation before was published as, projections are only of what changed.
    """

    record: LedgerRecord
    projections: Iterable[Message] | None = None
    withdrawn: Iterable[str] = ()
    state: bytes | None = None
    dead: Iterable[Message] = ()
    update: Update | None = None
    encoder: bytes = b""


def write_commit(publisher: Publisher, topics: Topics, commit: Commit) -> LedgerRecord:
    """Step 4, commit. Returns the record as written; after any error either nothing or all of it is visible.

    Raises `Fenced` when another learner has taken over, `BusUnavailable` when the outcome is not known.
    """
    record = commit.record
    publisher.begin()
    try:
        places: dict[str, Published | Update] = {}
        if commit.state is not None:
            chunks = _chunks(commit.state, record.number)
            sha256 = hashlib.sha256(commit.state).hexdigest()
            places["state"] = _send_all(publisher, topics["state"], chunks, sha256)
        if commit.encoder:
            chunks = _encoder_chunks(commit.encoder, record.number)
            sha256 = hashlib.sha256(commit.encoder).hexdigest()
            places["encoder"] = _send_all(publisher, topics["projections"], chunks, sha256)
        if commit.projections is not None:
            withdrawals = [encode(Withdrawal(class_id=class_id)) for class_id in sorted(commit.withdrawn)]
            if commit.update is None:
                for message in withdrawals:
                    publisher.send(topics["projections"], message)
                places["projections"] = _send_all(publisher, topics["projections"], commit.projections)
            else:
                changes = chain(withdrawals, commit.projections)
                places["projections"] = place = _send_all(publisher, topics["projections"], changes)
                places["update"] = _extended(commit.update, record.number, place)
        for message in commit.dead:
            publisher.send(topics["dead-letters"], message)
        record = record.model_copy(update=places)
        publisher.send(topics["windows"], encode(record))
        consumed = {
            TopicPartition(topics[role], partition): span.end
            for role, spans in record.ranges.items()
            for partition, span in spans.items()
        }
        publisher.commit(f"{topics.prefix}.learner", consumed)
    except (Fenced, BusUnavailable):
        raise  # the transaction is the newer publisher's to end
    except BaseException:
        publisher.abort()
        raise
    return record


def _send_all(publisher: Publisher, topic: str, messages: Iterable[Message], sha256: str | None = None) -> Published:
    """Sends the messages and waits for their offsets. The digest is that of all values, unless one is given."""
    values = hashlib.sha256()
    receipts: list[Receipt] = []
    for message in messages:
        values.update(message.value or b"")
        receipts.append(publisher.send(topic, message))
    publisher.flush()
    first = receipts[0].offset if receipts else 0
    end = receipts[-1].offset + 1 if receipts else 0
    return Published(first=first, end=end, count=len(receipts), sha256=sha256 or values.hexdigest())


def published_as(record: LedgerRecord) -> Update:
    """How a generation was published, for updates that follow: it must have been published."""
    if record.update is not None:
        return record.update
    place = record.projections
    assert place is not None
    return Update(base=record.number, whole=record.number, first=place.first, end=place.end, rows=0)


def _extended(before: Update, number: int, place: Published) -> Update:
    """The update after `before`, by what generation `number` published."""
    changes = {"base": number - 1, "end": max(before.end, place.end), "rows": before.rows + place.count}
    if before.first == before.end:  # the whole generation had no class
        changes["first"] = place.first
    return before.model_copy(update=changes)


def _chunks(state: bytes, window: int) -> Iterator[Message]:
    count = max(1, -(-len(state) // CHUNK_BYTES))
    for number, data in enumerate(_parts(state)):
        yield encode(StateChunk(chunk=number, count=count, window=window, data=data))


def _encoder_chunks(encoder: bytes, generation: int) -> Iterator[Message]:
    for number, data in enumerate(_parts(encoder)):
        yield encode(EncoderChunk(chunk=ENCODER_KEY.format(number), generation=generation, data=data))


def _parts(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]
