"""Translates the cleanup policy of a topic to and from Kafka's settings."""

from __future__ import annotations

from collections.abc import Mapping

from stream_cgzsl.bus.kafka.settings import MAX_RECORD_BYTES
from stream_cgzsl.bus.types import TopicSpec

_CLEANUP = {
    "keep": {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
    "expire": {"cleanup.policy": "delete"},
    "compact": {"cleanup.policy": "compact", "segment.bytes": str(16 * 1024 * 1024)},  # the newest is never compacted
}
_EVERY_TOPIC = {
    "max.message.bytes": str(MAX_RECORD_BYTES + 64 * 1024),  # a record and the batch around it
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str(2**63 - 1),  # an event may have any time
}
CLEANUP_SETTINGS = ("cleanup.policy", "retention.ms", "retention.bytes")
"""The settings that `cleanup_of` needs."""


def topic_settings(spec: TopicSpec) -> dict[str, str]:
    """The settings to create a topic with; those in `spec` take precedence."""
    return {**_EVERY_TOPIC, **_CLEANUP[spec.cleanup], **spec.settings}


def cleanup_of(settings: Mapping[str, str]) -> str:
    """The cleanup policy; `compact,delete` counts as `expire`."""
    if settings["cleanup.policy"] == "compact":
        return "compact"
    kept = settings["cleanup.policy"] == "delete" and settings["retention.ms"] == settings["retention.bytes"] == "-1"
    return "keep" if kept else "expire"
