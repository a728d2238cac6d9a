"""Opens and closes clients of kafka-python, and works around what its version 3.0.12 leaves out or gets wrong."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Mapping
from typing import Any

import kafka.errors as errors
from kafka.net import KafkaConnectionManager, KafkaNetClient, NetworkSelector

from stream_cgzsl.bus.kafka.errors import cannot_connect, is_rejection, translate
from stream_cgzsl.bus.kafka.settings import KafkaSettings

_QUICK_MS = 2_000
_CLOSE_SECONDS = 5.0
_TIMEOUTS = (errors.KafkaTimeoutError, errors.RequestTimedOutError)

_client_log = logging.getLogger("kafka")
if _client_log.level == logging.NOTSET:
    _client_log.setLevel(logging.CRITICAL)  # whatever matters is raised; set another level to see the client's own log


def open_client(kind: Any, settings: KafkaSettings, arguments: Mapping[str, Any]) -> Any:
    """A connected client of that kind. Raises soon if the cluster rejects us, after `connect_ms` if nobody answers."""
    total = settings.connect_ms
    for timeout_ms in (_QUICK_MS, total - _QUICK_MS) if total > _QUICK_MS else (total,):
        try:
            return _construct(kind, {**arguments, "bootstrap_timeout_ms": timeout_ms})
        except errors.KafkaTimeoutError as error:
            timeout = error
            if is_rejection(error.__cause__):
                break
        except errors.KafkaError as error:
            raise translate(error, settings) from error
    raise cannot_connect(settings, timeout.__cause__) from timeout


def _construct(kind: Any, arguments: Mapping[str, Any]) -> Any:
    """`kind(**arguments)`, except that a failure leaves no thread and no socket behind."""
    opened: list[KafkaNetClient] = []

    def network(**configs: Any) -> KafkaNetClient:
        net = NetworkSelector(**configs)
        opened.append(KafkaNetClient(net, _ConnectionManager(net, **configs)))
        return opened[0]

    try:
        return kind(**arguments, kafka_client=network)
    except BaseException:
        for client in opened:
            client.close()
        raise


class _ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]
    """The connections of one client. Errors about having none are raised from the last connection error.

    The client itself only logs that error. It also gives one host, chosen at random, all the time there is for the
    first connection; here each host has its share, in turn, so that one that hangs does not use up that of the others.
    """

    _failure: Exception | None = None

    def __init__(self, net: Any, **configs: Any) -> None:
        super().__init__(net, **configs)
        hosts = self.cluster.bootstrap_brokers()
        random.shuffle(hosts)
        turn = itertools.cycle(hosts)
        self.cluster.bootstrap_brokers = lambda: [next(turn)]
        self._hosts = len(hosts)
        self._share_ms: float | None = None

    async def _connect(self, node: Any, connection: Any, **options: Any) -> None:
        connection.init_future.add_callback(self._succeeded)
        connection.init_future.add_errback(self._failed)
        await super()._connect(node, connection, **options)

    def _succeeded(self, _: object) -> None:
        self._failure = None

    def _failed(self, error: Exception) -> None:
        """A rejection says more than what follows it, and any error says more than a timeout."""
        if not isinstance(error, _TIMEOUTS) and not is_rejection(self._failure):
            self._failure = error

    def bootstrap(self, timeout_ms: float | None = None, refresh: bool = True) -> None:
        self._share_ms = None if timeout_ms is None else timeout_ms / self._hosts
        try:
            super().bootstrap(timeout_ms, refresh)
        except errors.KafkaTimeoutError as error:
            raise error from self._failure

    def get_connection(self, node_id: Any, **options: Any) -> Any:
        if self._share_ms is not None and self.cluster.is_bootstrap(node_id):
            options["timeout_ms"] = self._share_ms
        try:
            return super().get_connection(node_id, **options)
        except errors.NodeNotReadyError as error:
            raise error from self._failure


def resume_join(consumer: Any) -> None:
    """Call it before each poll of a group member, or the client may forget a group join halfway and wait forever.

    A join that starts because the client has learned of the topic's partitions, and not because the group asks for it,
    is recorded nowhere. If the poll that started it returns too soon, the next poll sees nothing to do: the member
    never takes its partitions and sends no heartbeats.
    """
    coordinator = consumer._coordinator
    with coordinator._lock:
        if coordinator.rejoining:
            coordinator.rejoin_needed = True


def close_producer(producer: Any) -> None:
    """Closes it within a few seconds even if the broker is down and its records cannot be delivered."""
    try:
        producer.close(timeout=_CLOSE_SECONDS)
    except errors.KafkaTimeoutError:
        producer._sender.force_close()  # the client's own close gives up when its flush fails
