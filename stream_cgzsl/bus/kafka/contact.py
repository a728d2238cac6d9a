"""Detects what neither client reports while it reads: deleted topics and unreachable brokers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol

from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.errors import BusUnavailable


class PartitionCount(Protocol):
    """Asks the cluster how many partitions a topic has. Raises `TopicMissing`; `BusUnavailable` after `patience` s."""

    def __call__(self, topic: str, patience: float | None = None) -> int: ...


class Contact:
    """Notes when records last came; after a long time without, asks whether the topics are there."""

    def __init__(self, settings: KafkaSettings, partition_count: PartitionCount) -> None:
        self._patience = settings.patience
        self._partition_count = partition_count
        self._topics: set[str] = set()
        self._last = time.monotonic()

    def expect(self, topics: Iterable[str]) -> None:
        """The topics that are read from now on."""
        self._topics = set(topics)
        self._last = time.monotonic()

    def note(self, came: bool, timeout: float) -> None:
        """Records came, or none did within `timeout`. Raises `TopicMissing`, or `BusUnavailable` after twice the time.

        The time is the patience of the settings.
        """
        if came:
            self._last = time.monotonic()
        elif timeout and time.monotonic() - self._last > self._patience:
            self._check_topics(timeout)

    def _check_topics(self, timeout: float) -> None:
        try:
            for topic in self._topics:
                self._partition_count(topic, timeout)
        except BusUnavailable:
            if time.monotonic() - self._last > 2 * self._patience:
                raise
        else:
            self._last = time.monotonic()
