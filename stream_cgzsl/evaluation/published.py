"""Evaluations on the bus: reading and publishing them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from stream_cgzsl.bus import Bus, Publisher, Record, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BusUnavailable, Fenced
from stream_cgzsl.schemas import MAX_BYTES, Evaluation, Message, encode
from stream_cgzsl.windows.ledger import read_back, read_topic, valid_events

log = logging.getLogger(__name__)


def newest(bus: Bus, topics: Topics) -> Evaluation | None:
    """The last evaluation. Takes the same time however many there are."""
    topic = topics["evaluations"]
    return next(_evaluations(read_back(bus, topic, bus.end_offsets(topic)[0])), None)


def read_all(bus: Bus, topics: Topics) -> Iterator[Evaluation]:
    """Every evaluation, oldest first."""
    return _evaluations(read_topic(bus, topics["evaluations"]))


def _evaluations(records: Iterable[Record]) -> Iterator[Evaluation]:
    return (event for _, event in valid_events("evaluations", records) if isinstance(event, Evaluation))


def encode_within_limit(evaluation: Evaluation) -> Message:
    """The evaluation as a record of at most `MAX_BYTES`: with very many classes, per-class figures are left out.

    `best` always stays: the next evaluation needs it.
    """
    message = encode(evaluation)
    for field in ("movement", "per_class"):
        if len(message.value or b"") <= MAX_BYTES:
            break
        log.warning("generation %d has too many classes for one record; leaving out %s", evaluation.generation, field)
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
    """One transaction: the dead letters of the holdout, the evaluation, and how far the holdout was read.

    Raises `Fenced` if another evaluator has taken over, `BusUnavailable` if the outcome is not known.
    """
    publisher.begin()
    try:
        for message in dead:
            publisher.send(topics["dead-letters"], message)
        publisher.send(topics["evaluations"], encode_within_limit(evaluation))
        consumed = {TopicPartition(topics["holdout"], partition): end for partition, end in (holdout or {}).items()}
        publisher.commit(f"{topics.prefix}.evaluator", consumed)
    except (Fenced, BusUnavailable):
        raise  # only the newer publisher may end the transaction
    except BaseException:
        publisher.abort()
        raise
