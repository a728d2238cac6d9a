"""Evaluations on the bus: what is there already, and adding one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from stream_cgzsl.bus import Bus, Publisher, Record, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable, Fenced
from stream_cgzsl.schemas import MAX_BYTES, Evaluation, InvalidEvent, Message, decode, encode
from stream_cgzsl.windows.ledger import read_back, read_range

log = logging.getLogger(__name__)


def newest(bus: Bus, topics: Topics) -> Evaluation | None:
    """The last evaluation there is. Costs the same however many there are."""
    topic = topics["evaluations"]
    return next(_parsed(read_back(bus, topic, bus.end_offsets(topic)[0])), None)


def read_all(bus: Bus, topics: Topics) -> Iterator[Evaluation]:
    """Every evaluation, oldest first."""
    topic = topics["evaluations"]
    return _parsed(read_range(bus, topic, bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0]))


def _parsed(records: Iterable[Record]) -> Iterator[Evaluation]:
    for record in records:
        try:
            event = decode("evaluations", record.key, record.value, record.headers)
        except InvalidEvent as error:
            log.warning("passed over: %s", error.at(record.topic, record.partition, record.offset))
            continue
        assert isinstance(event, Evaluation)
        yield event


def fitted(evaluation: Evaluation) -> Message:
    """The evaluation as a record that a decoder looks at: of very many classes, single figures are left out.

    What the next evaluation needs, `best`, always stays.
    """
    message = encode(evaluation)
    for field in ("movement", "per_class"):
        if len(message.value or b"") <= MAX_BYTES:
            break
        log.warning("generation %d has too many classes for one record: without %s", evaluation.generation, field)
        evaluation = evaluation.model_copy(update={field: {}})
        message = encode(evaluation)
    return message


def publish(
    publisher: Publisher,
    topics: Topics,
    evaluation: Evaluation,
    dead: Iterable[Message] = (),
    holdout: Mapping[int, int] | None = None,
) -> None:
    """One transaction: the dead letters of the holdout, then the evaluation, and how far the holdout was read.

    Raises `Fenced` when another evaluator has taken over, `BusUnavailable` when the outcome is not known.
    """
    publisher.begin()
    try:
        for message in dead:
            publisher.send(topics["dead-letters"], message)
        publisher.send(topics["evaluations"], fitted(evaluation))
        consumed = {TopicPartition(topics["holdout"], partition): end for partition, end in (holdout or {}).items()}
        publisher.commit(f"{topics.prefix}.evaluator", consumed)
    except (Fenced, BusUnavailable):
        raise  # the transaction is the newer publisher's to end
    except BaseException:
        publisher.abort()
        raise
