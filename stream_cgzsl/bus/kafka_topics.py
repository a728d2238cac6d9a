"""How a topic is kept, in Kafka's words."""

from __future__ import annotations

from collections.abc import Mapping

from stream_cgzsl.bus.interface import TopicSpec
from stream_cgzsl.bus.kafka_settings import MAX_RECORD_BYTES

_CLEANUP = {
    "keep": {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
    "expire": {"cleanup.policy": "delete"},
    "compact": {"cleanup.policy": "compact"},
}
_SMALL_SEGMENTS = {"segment.bytes": str(16 * 1024 * 1024)}  # the newest segment is never compacted
_EVERY_TOPIC = {
    "max.message.bytes": str(MAX_RECORD_BYTES + 64 * 1024),  # a record, and the batch around it
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str(2**63 - 1),  # an event's own time may be any time
}
DESCRIBED = ("cleanup.policy", "retention.ms", "retention.bytes")
"""The settings that say how a topic is kept."""


def configuration(spec: TopicSpec) -> dict[str, str]:
    """The settings a topic is created with; those of its own win."""
    small = _SMALL_SEGMENTS if spec.cleanup == "compact" else {}
    return {**_EVERY_TOPIC, **_CLEANUP[spec.cleanup], **small, **spec.settings}


def cleanup_of(settings: Mapping[str, str]) -> str:
    """`compact,delete` expires, whatever else it does."""
    if settings["cleanup.policy"] == "compact":
        return "compact"
    kept = settings["cleanup.policy"] == "delete" and settings["retention.ms"] == settings["retention.bytes"] == "-1"
    return "keep" if kept else "expire"
