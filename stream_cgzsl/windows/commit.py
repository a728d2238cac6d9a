"""Writing a window: everything it changes becomes visible in one transaction, with the ledger record last."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from stream_cgzsl.bus import Publisher, Receipt, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable, Fenced
from stream_cgzsl.generation import Generation
from stream_cgzsl.schemas import (
    CHUNK_BYTES,
    LedgerRecord,
    Message,
    Projection,
    Published,
    Serving,
    StateChunk,
    Withdrawal,
    encode,
)


@dataclass(frozen=True)
class Commit:
    """All that window `record.number` publishes. `record` still lacks the places, which are known only on the way.

    `names` are the readable names of classes; `withdrawn` the classes that are recognised no longer.
    """

    record: LedgerRecord
    generation: Generation | None = None
    names: Mapping[str, str] | None = None
    withdrawn: Iterable[str] = ()
    state: bytes | None = None
    dead: Iterable[Message] = ()


def publish(publisher: Publisher, topics: Topics, commit: Commit) -> LedgerRecord:
    """Step 4, all of it. Returns the record as written; after any error nothing of it is visible, or all (see `commit`).

    Raises `Fenced` when another learner has taken over, `BusUnavailable` when the outcome is not known.
    """
    record = commit.record
    publisher.begin()
    try:
        changes: dict[str, object] = {}
        if commit.state is not None:
            changes["state"] = _send_all(
                publisher,
                topics["state"],
                _chunks(commit.state, record.number),
                hashlib.sha256(commit.state).hexdigest(),
            )
        if commit.generation is not None:
            for class_id in sorted(commit.withdrawn):
                publisher.send(topics["projections"], encode(Withdrawal(class_id=class_id)))
            changes["projections"] = _send_all(
                publisher, topics["projections"], _projections(commit.generation, commit.names or {}), None
            )
            changes["generation"] = commit.generation.digest
            changes["serving"] = _serving(commit.generation)
        for message in commit.dead:
            publisher.send(topics["dead-letters"], message)
        record = record.model_copy(update=changes)
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


def _send_all(publisher: Publisher, topic: str, messages: Iterable[Message], sha256: str | None) -> Published:
    """Sends, and waits for the offsets. Without a digest given, that of the values is taken."""
    values = hashlib.sha256()
    receipts: list[Receipt] = []
    for message in messages:
        values.update(message.value or b"")
        receipts.append(publisher.send(topic, message))
    publisher.flush()
    first = receipts[0].offset if receipts else 0
    end = receipts[-1].offset + 1 if receipts else 0
    return Published(first=first, end=end, count=len(receipts), sha256=sha256 or values.hexdigest())


def _chunks(state: bytes, window: int) -> Iterator[Message]:
    count = max(1, -(-len(state) // CHUNK_BYTES))
    for number in range(count):
        data = state[number * CHUNK_BYTES : (number + 1) * CHUNK_BYTES]
        yield encode(StateChunk(chunk=number, count=count, window=window, data=data))


def _projections(generation: Generation, names: Mapping[str, str]) -> Iterator[Message]:
    for index, class_id in enumerate(generation.class_ids):
        yield encode(
            Projection(
                class_id=class_id,
                vector=generation.vectors[index],
                bias=float(generation.biases[index]),
                seen=bool(generation.seen[index]),
                generation=generation.number,
                name=names.get(class_id),
            )
        )


def _serving(generation: Generation) -> Serving:
    return Serving(
        servable=generation.servable,
        metric=generation.metric,
        transform=generation.transform,
        centre=generation.centre.tobytes(),
        calibration=dict(generation.calibration),
    )
