"""Apache Kafka as the bus, with librdkafka for readers, subscriptions and writers.

Everything else is as in bus/kafka: topics, offsets, transactions and the lock cost a few requests a window, and stay
with kafka-python.
"""

from __future__ import annotations

from collections.abc import Mapping

import confluent_kafka

from stream_cgzsl.bus.interface import Reader, Subscription, Writer
from stream_cgzsl.bus.kafka.bus import KafkaBus
from stream_cgzsl.bus.librdkafka.reading import LibrdkafkaReader, LibrdkafkaSubscription
from stream_cgzsl.bus.librdkafka.writing import LibrdkafkaWriter
from stream_cgzsl.bus.types import TopicPartition


class LibrdkafkaBus(KafkaBus):
    """A Kafka cluster. Connects at once, so that a wrong address is reported at once."""

    client = f"librdkafka {confluent_kafka.libversion()[0]}"

    def reader(self, start: Mapping[TopicPartition, int], waits: bool = True) -> Reader:
        return LibrdkafkaReader(self.settings, self.partition_count, self.begin_offsets, self._other, start, waits)

    def subscribe(self, topic: str, group: str) -> Subscription:
        return LibrdkafkaSubscription(self.settings, self.partition_count, self._other, topic, group)

    def writer(self) -> Writer:
        return LibrdkafkaWriter(self.settings, self.partition_count)

    def _other(self, start: Mapping[TopicPartition, int]) -> Reader:
        return super().reader(start, waits=False)
