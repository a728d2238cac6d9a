"""What the outbox makes of answers that no broker gives on command: many failures at once."""

from __future__ import annotations

from typing import Any

import kafka.errors as errors
import pytest
from kafka import TopicPartition
from kafka.producer.future import FutureProduceResult, FutureRecordMetadata

from stream_cgzsl.bus.kafka_settings import KafkaSettings
from stream_cgzsl.bus.kafka_writing import _Outbox
from stream_cgzsl.errors import BusUnavailable, TopicMissing
from stream_cgzsl.schemas.message import Message


class Client:
    """Takes messages as one batch, of which nobody hears again."""

    def __init__(self) -> None:
        self._batch: Any = FutureProduceResult(TopicPartition("t", 0))

    def send(self, *_: object) -> Any:
        return FutureRecordMetadata(self._batch, 0, 0, None, -1, -1, -1)

    def flush(self, _: float) -> None:
        self._batch.failure(errors.KafkaTimeoutError("no answer in time"))


class Lookups:
    """The topic is there the first time; afterwards that `outcome` comes of asking."""

    def __init__(self, outcome: Exception | None) -> None:
        self._outcome = outcome
        self.asked = 0

    def __call__(self, *_: object) -> int:
        self.asked += 1
        if self.asked > 1 and self._outcome is not None:
            raise self._outcome
        return 1


def flush_many(lookups: Lookups) -> None:
    outbox = _Outbox(KafkaSettings.parse("kafka://nowhere:9092"), Client(), lookups)
    for number in range(1000):
        outbox.send("t", Message(None, b"%d" % number), None)
    outbox.flush()


def test_a_thousand_failures_are_asked_about_once() -> None:
    lookups = Lookups(None)
    with pytest.raises(BusUnavailable, match="no answer in time"):
        flush_many(lookups)
    assert lookups.asked == 2  # before the first send, and after the failures


def test_a_topic_that_went_away_meanwhile_is_what_is_told() -> None:
    with pytest.raises(TopicMissing, match="deleted"):
        flush_many(Lookups(TopicMissing("topic 't' was deleted")))


def test_where_the_cluster_does_not_say_the_first_failure_is_told() -> None:
    with pytest.raises(BusUnavailable, match="no answer in time"):
        flush_many(Lookups(BusUnavailable("asked in vain")))
