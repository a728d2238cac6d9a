"""A group reads on where it said it was."""

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


def test_a_new_group_begins_at_the_first_record(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b"))
    with bus.subscribe(topic, name) as subscription:
        assert texts(take(subscription, 2)) == ["a", "b"]
        assert subscription.assignment() == {TopicPartition(topic, 0)}


def test_a_group_resumes_behind_its_commit(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b", "c", "d"))
    with bus.subscribe(topic, name) as subscription:
        take(subscription, 3)
        subscription.commit({TopicPartition(topic, 0): 2})
        assert bus.committed(name, topic) == {0: 2}
    with bus.subscribe(topic, name) as subscription:
        assert texts(take(subscription, 2)) == ["c", "d"]


def test_what_was_read_and_not_committed_is_read_again(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b"))
    for _ in range(2):
        with bus.subscribe(topic, name) as subscription:
            assert texts(take(subscription, 2)) == ["a", "b"]
    assert bus.committed(name, topic) == {}


def test_only_the_partitions_of_a_commit_move(bus: Bus, new_topic: NewTopic, name: str) -> None:
    topic = new_topic(partitions=3)
    for partition in range(3):
        write(bus, topic, values("a", "b"), partition)
    with bus.subscribe(topic, name) as subscription:
        take(subscription, 6)
        subscription.commit({TopicPartition(topic, 0): 2, TopicPartition(topic, 2): 1})
        subscription.commit({TopicPartition(topic, 2): 2})
    assert bus.committed(name, topic) == {0: 2, 2: 2}


def test_a_commit_that_is_not_waited_for_comes_all_the_same(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b", "c"))
    with bus.subscribe(topic, name) as subscription:
        take(subscription, 3)
        subscription.commit_soon({TopicPartition(topic, 0): 1})
        subscription.commit_soon({TopicPartition(topic, 0): 2, TopicPartition("not ours", 0): 7})
        until(lambda: bus.committed(name, topic) == {0: 2})
        subscription.commit_soon({})


def test_a_member_knows_how_much_waits_for_it(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b", "c", "d"))
    with bus.subscribe(topic, name) as subscription:
        assert subscription.waiting() == 0
        take(subscription, 1)
        assert subscription.waiting() == 3
        take(subscription, 3)
        assert subscription.waiting() == 0


def test_groups_do_not_know_of_each_other(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b"))
    for group in (f"{name}-1", f"{name}-2"):
        with bus.subscribe(topic, group) as subscription:
            assert texts(take(subscription, 2)) == ["a", "b"]
            subscription.commit({TopicPartition(topic, 0): 2})


def test_when_a_member_leaves_the_next_one_takes_over(bus: Bus, topic: str, name: str) -> None:
    write(bus, topic, values("a", "b", "c"))
    first, second = bus.subscribe(topic, name), bus.subscribe(topic, name)
    take(first, 1)
    first.commit({TopicPartition(topic, 0): 1})
    assert second.poll(0.5) == []
    assert second.assignment() == frozenset()
    first.close()
    assert texts(take(second, 2)) == ["b", "c"]
    second.close()
