"""Generations on the bus: what one is published as, and loading it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.schemas import LedgerRecord, Message, Projection, Serving, encode
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.commit import Commit
from stream_cgzsl.windows.ledger import Incomplete, published, read_events


def commit_of(
    record: LedgerRecord,
    generation: Generation,
    names: Mapping[str, str] | None = None,
    withdrawn: Iterable[str] = (),
    state: bytes | None = None,
    dead: Iterable[Message] = (),
) -> Commit:
    """The commit of a window that makes this generation. `names` are the readable names of classes."""
    serving = Serving(
        servable=generation.servable,
        metric=generation.metric,
        transform=generation.transform,
        centre=generation.centre.tobytes(),
        calibration=dict(generation.calibration),
    )
    record = record.model_copy(update={"generation": generation.digest, "serving": serving})
    return Commit(record, _projections(generation, names or {}), withdrawn, state, dead)


def _projections(generation: Generation, names: Mapping[str, str]) -> Iterator[Message]:
    """One message per class, in the order of class ids."""
    for index, class_id in enumerate(generation.class_ids):
        yield encode(
            Projection(
                class_id=class_id,
                vector=generation.vectors[index],
                bias=float(generation.biases[index]),
                seen=bool(generation.seen[index]),
                generation=generation.number,
                name=names.get(class_id),
                examples=None if generation.examples is None else generation.examples[index],
            )
        )


def load_generation(bus: Bus, topics: Topics, record: LedgerRecord) -> Generation:
    """The generation a ledger record names, checked against its digest. Raises `Incomplete` when it is gone."""
    place, serving = published(record.projections, record), record.serving
    assert serving is not None and record.generation is not None
    projections = [
        event
        for event in read_events(bus, topics, "projections", place)
        if isinstance(event, Projection) and event.generation == record.number
    ]
    if len(projections) != place.count:
        raise Incomplete(f"{len(projections)} of {place.count} projections of generation {record.number} are left")
    try:
        generation = _assemble(record.number, projections, serving)
    except ValueError as error:
        raise _tampered(bus, record, f"is inconsistent ({error})") from error
    if generation.digest != record.generation:
        raise _tampered(
            bus, record, f"has the digest {generation.digest[:12]} and the ledger says {record.generation[:12]}"
        )
    return generation


def _assemble(number: int, projections: list[Projection], serving: Serving) -> Generation:
    centre = np.frombuffer(serving.centre, "<f4")
    examples = [p.examples for p in projections if p.examples is not None]
    return Generation(
        number=number,
        class_ids=tuple(p.class_id for p in projections),
        seen=np.array([p.seen for p in projections], bool),
        vectors=np.stack([p.vector for p in projections]) if projections else np.zeros((0, len(centre)), np.float32),
        biases=np.array([p.bias for p in projections], np.float32),
        centre=centre,
        metric=serving.metric,
        transform=serving.transform,
        servable=serving.servable,
        calibration=serving.calibration,
        examples=np.array(examples, np.int64) if len(examples) == len(projections) else None,
    )


def _tampered(bus: Bus, record: LedgerRecord, what: str) -> BrokenLedger:
    return BrokenLedger(
        f"{bus.url}: generation {record.number} {what}; somebody else changed the projections: check who may write to "
        "that topic"
    )
