"""What a stream has been fed already, and whether more of it fits."""

from __future__ import annotations

from collections.abc import Iterable

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.bus import Bus, TopicPartition
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Boundary, Genesis, InvalidEvent, decode
from stream_cgzsl.windows.ledger import parse, read_range

_ID_HEADER = "ce_id"


def boundaries_on(bus: Bus, topics: Topics) -> list[Boundary]:
    """Those of everybody, oldest first. What is no valid control record is for the learner to bury."""
    found: list[Boundary] = []
    topic = topics["control"]
    for record in read_range(bus, topic, bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0]):
        try:
            event = decode("control", record.key, record.value, record.headers)
        except InvalidEvent:
            continue
        if isinstance(event, Boundary):
            found.append(event)
    return found


def ids_after(bus: Bus, topics: Topics, boundaries: Iterable[Boundary], role: str) -> set[str]:
    """The ids of a topic's records that none of the boundaries has closed off: what an interrupted feed has sent."""
    topic = topics[role]
    starts, ends = bus.begin_offsets(topic), bus.end_offsets(topic)
    for boundary in boundaries:
        for partition, offset in (boundary.cut or {}).get(role, {}).items():
            starts[partition] = max(starts.get(partition, 0), offset)
    open_ends = {TopicPartition(topic, p): end for p, end in ends.items() if starts.get(p, 0) < end}
    ids: set[str] = set()
    if open_ends:
        with bus.reader({tp: starts.get(tp.partition, 0) for tp in open_ends}, waits=False) as reader:
            while any(reader.position(tp) < end for tp, end in open_ends.items()):
                for record in reader.poll(1.0):
                    ids.update(value.decode(errors="replace") for name, value in record.headers if name == _ID_HEADER)
    return ids


def genesis_of(bus: Bus, topics: Topics) -> Genesis | None:
    """What the stream's first record fixed; None where no learner has ever started."""
    topic = topics["windows"]
    first = next(read_range(bus, topic, bus.begin_offsets(topic)[0], bus.end_offsets(topic)[0]), None)
    return None if first is None else parse(first).genesis


def check_genesis(bus: Bus, topics: Topics, data: Dataset) -> None:
    """Raises `UsageError` where the stream exists and its vectors are not this data's."""
    genesis = genesis_of(bus, topics)
    if genesis is None:
        return
    stream = f"{bus.url}: the stream {topics.prefix!r}"
    for what, found, wanted in (
        ("features", data.features.shape[1], genesis.features),
        ("attributes", data.attributes.shape[1], genesis.attributes),
    ):
        if found != wanted:
            raise UsageError(
                f"{stream} has {what} of {wanted} numbers since its genesis, and those of {data.name} have {found}; "
                "choose another --prefix"
            )
    if data.signed and not genesis.signed:
        raise UsageError(
            f"{stream} takes no negative features since its genesis, and {data.name} has some; choose another --prefix, "
            "and start its learner with --signed"
        )
