"""Which client a `kafka://` URL gets."""

from __future__ import annotations

from importlib.util import find_spec

from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.errors import UsageError


def wants_librdkafka(settings: KafkaSettings) -> bool:
    """Whether the settings ask for it. Raises `UsageError` if they do and it is not installed."""
    if settings.client != "librdkafka":
        return False
    if find_spec("confluent_kafka") is None:
        raise UsageError(
            f"{settings.url}: client=librdkafka needs the package confluent-kafka: pip install 'stream-cgzsl[fast]'"
        )
    return True
