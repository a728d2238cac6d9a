"""Topics that get more partitions while the workers run: records in the new ones are learned and answered too."""

from __future__ import annotations

import uuid

import pytest
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    Producer,
    learner,
    new_bus,
    questions_about,
    scorer,
    settings_for,
    wait_for_answers,
    wait_for_window,
)

from stream_cgzsl.bus.kafka.bus import KafkaBus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.history.check import check

GROWN = ("features", "holdout", "samples", "predictions")


@pytest.mark.kafka
def test_new_partitions_are_learned_from_and_answered(kafka_url: str) -> None:
    topics = Topics(f"growing-{uuid.uuid4().hex[:8]}")
    with new_bus(f"{kafka_url}{'&' if '?' in kafka_url else '?'}patience_ms=4000", 1, topics) as bus:
        assert isinstance(bus, KafkaBus)
        producer, settings = Producer(bus, topics), settings_for(bus, topics, **NO_DESCRIBE)
        with learner(settings) as learns, scorer(settings) as scores:
            producer.describe(*CLASSES)
            producer.teach(*CLASSES[:4])
            producer.boundary()
            wait_for_window(bus, 1, topics, learns.alive)
            bus._admin.create_partitions({topics[role]: 4 for role in GROWN})
            bus._admin.wait_for_topics([topics[role] for role in GROWN])
            assert bus.partition_count(topics["features"]) == 4
            producer.teach(*CLASSES[4:], purpose=2)
            producer.boundary()
            record = wait_for_window(bus, 2, topics, learns.alive)
            questions = questions_about(*CLASSES, tag="grown")
            producer.ask(questions)
            answers = wait_for_answers(bus, questions, topics, scores.alive)
        spans = record.ranges["features"].values()
        assert sum(span.accepted for span in spans) == 10 * len(CLASSES[4:])
        assert sum(span.accepted > 0 for span in spans) > 1  # more than the first partition
        assert {answer.status for answer in answers.values()} == {"ok"}
        assert check(bus, topics).problems == []
