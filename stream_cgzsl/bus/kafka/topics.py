"""The settings of a topic: what we create it with, what they mean, and which of them are too weak."""

from __future__ import annotations

from collections.abc import Mapping

from stream_cgzsl.bus.kafka.settings import MAX_RECORD_BYTES
from stream_cgzsl.bus.types import TopicSpec

_CLEANUP = {
    "keep": {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
    "expire": {"cleanup.policy": "delete"},
    "compact": {
        "cleanup.policy": "compact",
        "segment.bytes": str(16 * 1024 * 1024),  # the newest is never compacted
        "min.compaction.lag.ms": str(10 * 60 * 1000),  # so that what a slow reader has begun to read stays whole
    },
}
COPIES = 3
"""As many as needed to write, and to lose none, while one broker is down."""
_NEEDED = 2
_EVERY_TOPIC = {
    "max.message.bytes": str(MAX_RECORD_BYTES + 64 * 1024),  # a record and the batch around it
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str(2**63 - 1),  # an event may have any time
}
CLEANUP_SETTINGS = ("cleanup.policy", "retention.ms", "retention.bytes")
"""The settings that `cleanup_of` needs."""
SAFETY_SETTINGS = ("cleanup.policy", "min.insync.replicas", "min.compaction.lag.ms")
"""The settings that `weaknesses` needs."""


def topic_settings(spec: TopicSpec, replication: int) -> dict[str, str]:
    """The settings to create a topic with; those in `spec` take precedence."""
    needed = {"min.insync.replicas": str(_NEEDED)} if replication >= COPIES else {}
    return {**_EVERY_TOPIC, **needed, **_CLEANUP[spec.cleanup], **spec.settings}


def cleanup_of(settings: Mapping[str, str]) -> str:
    """The cleanup policy; `compact,delete` counts as `expire`."""
    if settings["cleanup.policy"] == "compact":
        return "compact"
    kept = settings["cleanup.policy"] == "delete" and settings["retention.ms"] == settings["retention.bytes"] == "-1"
    return "keep" if kept else "expire"


def weaknesses(where: str, copies: int, brokers: int, settings: Mapping[str, str]) -> list[str]:
    """What is too weak about a topic with so many copies on a cluster of so many brokers, and what to do."""
    found = []
    needed = int(settings["min.insync.replicas"])
    if copies < min(COPIES, brokers):
        found.append(
            f"{where} has replication factor {copies} on a cluster of {brokers} brokers: if "
            f"{'one is' if copies == 1 else f'{copies} are'} lost, its records are too. Raise it with "
            f"kafka-reassign-partitions.sh, or create it anew with --replication {min(COPIES, brokers)}"
        )
    if copies > 1 and needed < _NEEDED:
        found.append(
            f"{where} has min.insync.replicas={needed}: what was acknowledged may be on one broker only. "
            + (f"Set min.insync.replicas={_NEEDED}" if copies >= COPIES else "Raise its replication factor first")
        )
    if needed >= copies > 1:
        found.append(
            f"{where} has min.insync.replicas={needed} and {copies} copies: nobody can write while one broker is down. "
            "Set it lower than the number of copies"
        )
    if settings["cleanup.policy"] == "compact" and settings["min.compaction.lag.ms"] == "0":
        lag = _CLEANUP["compact"]["min.compaction.lag.ms"]
        found.append(
            f"{where} has no min.compaction.lag.ms: a scorer that reads slowly may find a generation gone each time. "
            f"Set min.compaction.lag.ms={lag}"
        )
    return found
