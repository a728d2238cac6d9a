"""The first contact with a cluster: a client that has reached it, or an error that says why not as far as it was told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import kafka.errors as errors

from stream_cgzsl.bus.kafka_errors import last_failure, translated, turned_away, unreachable
from stream_cgzsl.bus.kafka_settings import KafkaSettings

_QUICK_MS = 2_000


def opened(kind: Any, settings: KafkaSettings, arguments: Mapping[str, Any]) -> Any:
    """A client of that kind. Raises soon when the cluster turns us away, and after `connect_ms` when nobody answers."""
    whole = settings.connect_ms
    failure: errors.KafkaError | None = None
    for patience_ms in (_QUICK_MS, whole - _QUICK_MS) if whole > _QUICK_MS else (whole,):
        last_failure.error = None
        try:
            return _built(kind, {**arguments, "bootstrap_timeout_ms": patience_ms})
        except errors.KafkaTimeoutError as error:
            failure = error
        except errors.KafkaError as error:
            raise translated(error, settings) from error
        if turned_away(last_failure.error):
            break
    raise unreachable(settings, last_failure.error) from failure


def _built(kind: Any, arguments: Mapping[str, Any]) -> Any:
    """What `kind(**arguments)` does, except that a failure leaves no thread and no socket behind."""
    client = kind.__new__(kind)
    try:
        client.__init__(**arguments)
    except BaseException:
        if hasattr(client, "_net"):
            client._client.close()
            client._net.stop()
        raise
    return client
