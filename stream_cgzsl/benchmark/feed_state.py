"""How much of a feed is already on the bus, and whether the data fits the stream."""

from __future__ import annotations

from collections.abc import Iterable

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.scan import scan
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import UsageError
from stream_cgzsl.schemas import Boundary, Genesis
from stream_cgzsl.windows.ledger import parse, read_topic, valid_events

_ID_HEADER = "ce_id"


def read_boundaries(bus: Bus, topics: Topics) -> list[Boundary]:
    """All boundaries by any sender, oldest first. Invalid control records are skipped: the learner reports them."""
    events = valid_events("control", read_topic(bus, topics["control"]))
    return [event for _, event in events if isinstance(event, Boundary)]


def ids_after(bus: Bus, topics: Topics, boundaries: Iterable[Boundary], role: str) -> set[str]:
    """The ids of a topic's records after all of these boundaries: what an interrupted task has sent."""
    topic = topics[role]
    starts = bus.begin_offsets(topic)
    for boundary in boundaries:
        for partition, offset in (boundary.cut or {}).get(role, {}).items():
            starts[partition] = max(starts.get(partition, 0), offset)
    return {
        value.decode(errors="replace")
        for records in scan(bus, topic, starts, bus.end_offsets(topic))
        for record in records
        for name, value in record.headers
        if name == _ID_HEADER
    }


def read_genesis(bus: Bus, topics: Topics) -> Genesis | None:
    """What the stream's first ledger record fixed; None before a learner has started."""
    first = next(read_topic(bus, topics["windows"]), None)
    return None if first is None else parse(first).genesis


def check_genesis(bus: Bus, topics: Topics, data: Dataset) -> None:
    """Raises `UsageError` where the stream was started for other vectors than this data has."""
    genesis = read_genesis(bus, topics)
    if genesis is None:
        return
    stream = f"{bus.url}: the stream {topics.prefix!r}"
    for what, found, wanted in (
        ("features", data.features.shape[1], genesis.features),
        ("attributes", data.attributes.shape[1], genesis.attributes),
    ):
        if found != wanted:
            raise UsageError(
                f"{stream} was started with {what} of {wanted} numbers, and those of {data.name} have {found}; "
                "choose another --prefix"
            )
    if data.signed and not genesis.signed:
        raise UsageError(
            f"{stream} was started without --signed, and {data.name} has negative features; choose another --prefix, "
            "and start its learner with --signed"
        )
