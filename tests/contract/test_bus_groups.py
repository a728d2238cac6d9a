"""A group resumes where it has committed."""

from __future__ import annotations

from bus_reading import NewTopic, texts, values, write
from patience import until

from stream_cgzsl.bus import Bus, Record, Subscription, TopicPartition


def take(subscription: Subscription, count: int) -> list[Record]:
    """`count` records, polled a few at a time."""
    records: list[Record] = []

    def enough() -> bool:
        records.extend(subscription.poll(1.0, max_records=count - len(records)))
        return len(records) == count

    until(enough)
    return records


def test_a_new_group_starts_at_the_first_record(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b"))
    with bus.subscribe(topic, name) as subscription:
        assert texts(take(subscription, 2)) == ["a", "b"]
        assert subscription.assignment() == {TopicPartition(topic, 0)}


def test_a_group_resumes_at_its_committed_offset(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b", "c", "d"))
    with bus.subscribe(topic, name) as subscription:
        take(subscription, 3)
        subscription.commit({TopicPartition(topic, 0): 2})
        assert bus.committed(name, topic) == {0: 2}
    with bus.subscribe(topic, name) as subscription:
        assert texts(take(subscription, 2)) == ["c", "d"]


def test_records_read_but_not_committed_are_read_again(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b"))
    for _ in range(2):
        with bus.subscribe(topic, name) as subscription:
            assert texts(take(subscription, 2)) == ["a", "b"]
    assert bus.committed(name, topic) == {}


def test_a_commit_changes_only_its_own_partitions(bus: Bus, new_topic: NewTopic, name: str) -> None:
    topic = new_topic(partitions=3)
    for partition in range(3):
        write(bus, topic, values("a", "b"), partition)
    with bus.subscribe(topic, name) as subscription:
        take(subscription, 6)
        subscription.commit({TopicPartition(topic, 0): 2, TopicPartition(topic, 2): 1})
        subscription.commit({TopicPartition(topic, 2): 2})
    assert bus.committed(name, topic) == {0: 2, 2: 2}


def test_an_asynchronous_commit_is_stored(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b", "c"))
    with bus.subscribe(topic, name) as subscription:
        take(subscription, 3)
        subscription.commit_soon({TopicPartition(topic, 0): 1})
        subscription.commit_soon({TopicPartition(topic, 0): 2, TopicPartition("not ours", 0): 7})
        until(lambda: bus.committed(name, topic) == {0: 2})
        subscription.commit_soon({})


def test_lag_counts_the_records_not_returned_yet(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b", "c", "d"))
    with bus.subscribe(topic, name) as subscription:
        assert subscription.lag() == 0
        take(subscription, 1)
        assert subscription.lag() == 3
        take(subscription, 3)
        assert subscription.lag() == 0


def test_groups_are_independent(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b"))
    for group in (f"{name}-1", f"{name}-2"):
        with bus.subscribe(topic, group) as subscription:
            assert texts(take(subscription, 2)) == ["a", "b"]
            subscription.commit({TopicPartition(topic, 0): 2})


def test_when_a_member_leaves_another_takes_over(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b", "c"))
    first, second = bus.subscribe(topic, name), bus.subscribe(topic, name)
    take(first, 1)
    first.commit({TopicPartition(topic, 0): 1})
    assert second.poll(0.5) == []
    assert second.assignment() == frozenset()
    first.close()
    assert texts(take(second, 2)) == ["b", "c"]
    second.close()
