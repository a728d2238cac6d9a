"""A publisher that was idle for so long that the cluster has forgotten it: by default, for seven days."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.errors import TransactionalIdNotFoundError
from patience import until

from stream_cgzsl.bus import TopicSpec, connect
from stream_cgzsl.bus.kafka.bus import KafkaBus
from stream_cgzsl.bus.kafka.settings import KafkaSettings
from stream_cgzsl.demo import broker
from stream_cgzsl.errors import BusUnavailable
from stream_cgzsl.schemas.message import Message

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def is_forgotten(bus: KafkaBus, name: str) -> bool:
    admin = KafkaAdminClient(**KafkaSettings.parse(bus.url).admin())
    try:
        admin.describe_transactions([name])
    except TransactionalIdNotFoundError:
        return True
    finally:
        admin.close()
    return False


def test_a_forgotten_publisher_is_told_so_and_a_new_one_goes_on(tmp_path: Path) -> None:
    """It is not fenced: nobody has taken over, so a leader need not end."""
    try:
        broker.jars()
    except BusUnavailable as error:
        pytest.skip(f"this test needs a broker of its own: {error}")
    idle = {
        "transactional.id.expiration.ms": "500",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
    }
    started = broker.start(tmp_path, properties=idle)
    try:
        with connect(started.url) as bus:
            assert isinstance(bus, KafkaBus)
            bus.create([TopicSpec("t")])
            with bus.publisher("p") as publisher:
                publisher.begin()
                publisher.send("t", Message(None, b"before"))
                publisher.commit()
                until(lambda: is_forgotten(bus, "p"))
                publisher.begin()
                with pytest.raises(BusUnavailable, match=r"'p'.*no longer knows it.*open a new publisher"):
                    publisher.send("t", Message(None, b"lost"))
                    publisher.commit()
            with bus.publisher("p") as publisher:
                publisher.begin()
                publisher.send("t", Message(None, b"after"))
                publisher.commit()
            assert bus.end_offsets("t") == {0: 4}
    finally:
        started.kill()
