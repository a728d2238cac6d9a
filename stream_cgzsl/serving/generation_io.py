"""Generations on the bus: what one is published as, and loading it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat

import numpy as np

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.schemas import (
    EncoderChunk,
    EncoderLayer,
    Event,
    LedgerRecord,
    Message,
    Projection,
    Published,
    Serving,
    Update,
    Withdrawal,
    encode,
)
from stream_cgzsl.serving.delta import Delta
from stream_cgzsl.serving.encoder import Layer, from_bytes, to_bytes
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.windows.commit import Commit, published_as
from stream_cgzsl.windows.ledger import Incomplete, published, read_events

FEWEST_ROWS = 1000


def commit_of(
    record: LedgerRecord,
    generation: Generation,
    names: Mapping[str, str] | None = None,
    withdrawn: Iterable[str] = (),
    state: bytes | None = None,
    dead: Iterable[Message] = (),
    before: LedgerRecord | None = None,
) -> Commit:
    """The commit of a window that makes this generation. `names` are the readable names of classes.

    A generation that a delta made is published as an update of `before`, the record of the window before, unless it is
    time to publish all of it.
    """
    serving = Serving(
        servable=generation.servable,
        metric=generation.metric,
        transform=generation.transform,
        centre=generation.centre.tobytes(),
        calibration=dict(generation.calibration),
        incremental=generation.incremental,
        encoder=tuple(
            EncoderLayer(outputs=len(layer.bias), inputs=layer.weights.shape[1], activation=layer.activation)
            for layer in generation.encoder or ()
        ),
    )
    record = record.model_copy(update={"generation": generation.digest, "serving": serving})
    update = None if before is None else _update_of(generation, before)
    if update is None or generation.delta is None:
        encoder = to_bytes(generation.encoder or ())
        return Commit(record, _projections(generation, names or {}), withdrawn, state, dead, encoder=encoder)
    delta = generation.delta
    return Commit(record, _projections(delta, names or {}), delta.withdrawn, state, dead, update)


def _update_of(generation: Generation, before: LedgerRecord) -> Update | None:
    """What the generation before was published as, if this one can be an update of it.

    Rows that were published since the last whole generation are bounded by twice its classes: so are the costs of
    starting to follow a stream, however long its history is.
    """
    delta = generation.delta
    if delta is None or generation.base != before.number or before.projections is None:
        return None
    update = published_as(before)
    rows = update.rows + len(delta.class_ids) + len(delta.withdrawn)
    return update if rows <= max(2 * len(generation.class_ids), FEWEST_ROWS) else None


def _projections(made: Generation | Delta, names: Mapping[str, str]) -> Iterator[Message]:
    """One message per class, in the order of class ids."""
    examples = repeat(None) if made.examples is None else made.examples.tolist()
    rows = zip(made.class_ids, made.vectors, made.biases.tolist(), made.seen.tolist(), examples, strict=False)
    for class_id, vector, bias, seen, count in rows:
        yield encode(
            Projection(
                class_id=class_id,
                vector=vector,
                bias=bias,
                seen=seen,
                generation=made.number,
                name=names.get(class_id),
                examples=count,
            )
        )


class GenerationLoader:
    """Loads generations of a stream, one after the other. One that continues the last one costs only what changed."""

    def __init__(self, bus: Bus, topics: Topics) -> None:
        self._bus = bus
        self._topics = topics
        self._record: LedgerRecord | None = None
        self.generation: Generation | None = None

    def load(self, record: LedgerRecord) -> Generation:
        """The generation a ledger record names, checked against its digest. Raises `Incomplete` when it is gone."""
        if record.update is None:
            generation = self._whole(record)
        else:
            try:
                generation = self._continued(record, record.update) or self._collected(record, record.update)
            except ValueError as error:
                raise _tampered(self._bus, record, f"is inconsistent ({error})") from error
        if generation.digest != record.generation:
            raise _tampered(
                self._bus,
                record,
                f"has the digest {generation.digest[:12]} and the ledger says {(record.generation or 'none')[:12]}",
            )
        self._record, self.generation = record, generation
        return generation

    def _whole(self, record: LedgerRecord) -> Generation:
        place = published(record.projections, record)
        projections = [
            event
            for event in read_events(self._bus, self._topics, "projections", place)
            if isinstance(event, Projection) and event.generation == record.number
        ]
        if len(projections) != place.count:
            raise Incomplete(f"{len(projections)} of {place.count} projections of generation {record.number} are left")
        try:
            return _assembled(record, projections, self._encoder(record))
        except ValueError as error:
            raise _tampered(self._bus, record, f"is inconsistent ({error})") from error

    def _encoder(self, record: LedgerRecord) -> tuple[Layer, ...]:
        place, serving = record.encoder, record.serving
        if place is None or serving is None:
            return ()
        chunks = [
            event.data
            for event in read_events(self._bus, self._topics, "projections", place)
            if isinstance(event, EncoderChunk) and event.generation == record.number
        ]
        if len(chunks) != place.count:
            raise Incomplete(
                f"{len(chunks)} of {place.count} parts of the encoder of generation {record.number} are left"
            )
        shapes = [(layer.outputs, layer.inputs, layer.activation) for layer in serving.encoder]
        return from_bytes(b"".join(chunks), shapes)

    def _continued(self, record: LedgerRecord, update: Update) -> Generation | None:
        """From the last generation, by what was published since; None where that is not possible."""
        last, generation = self._record, self.generation
        if last is None or generation is None or not update.whole <= last.number < record.number:
            return None
        rows, gone = self._collect(record, published_as(last).end, update.end)
        delta = Delta(
            record.number,
            tuple(rows),
            np.array([row.seen for row in rows.values()], bool),
            _stacked(list(rows.values()), generation.features),
            np.array([row.bias for row in rows.values()], np.float32),
            np.array([row.examples or 0 for row in rows.values()], np.int64),
            tuple(sorted(gone)),
        )
        generation = generation.after(delta)
        missing = len(generation.class_ids) != record.seen + record.unseen or generation.digest != record.generation
        return None if missing else generation  # with records gone, the newer ones of the topic may still be whole

    def _collected(self, record: LedgerRecord, update: Update) -> Generation:
        """From the last one that was published whole, and everything that was published since."""
        rows, _ = self._collect(record, update.first, update.end)
        if len(rows) != record.seen + record.unseen:
            classes = record.seen + record.unseen
            raise Incomplete(f"{len(rows)} of {classes} projections of generation {record.number} are left")
        return _assembled(record, list(rows.values()))

    def _collect(self, record: LedgerRecord, first: int, end: int) -> tuple[dict[str, Projection], set[str]]:
        """The last row of each class between two offsets, by class id, and the classes withdrawn after theirs."""
        rows: dict[str, Projection] = {}
        gone: set[str] = set()
        for event in self._events(first, end):
            if isinstance(event, Projection) and event.generation <= record.number:
                rows[event.class_id] = event
                gone.discard(event.class_id)
            elif isinstance(event, Withdrawal):
                rows.pop(event.class_id, None)
                gone.add(event.class_id)
        return dict(sorted(rows.items())), gone

    def _events(self, first: int, end: int) -> Iterator[Event]:
        place = Published(first=first, end=end, count=0, sha256="0" * 64)
        return read_events(self._bus, self._topics, "projections", place)


def load_generation(bus: Bus, topics: Topics, record: LedgerRecord) -> Generation:
    """As `GenerationLoader.load`, for one generation."""
    return GenerationLoader(bus, topics).load(record)


def _assembled(record: LedgerRecord, projections: list[Projection], encoder: tuple[Layer, ...] = ()) -> Generation:
    serving = record.serving
    assert serving is not None
    centre = np.frombuffer(serving.centre, "<f4")
    examples = [p.examples for p in projections if p.examples is not None]
    return Generation(
        number=record.number,
        class_ids=tuple(p.class_id for p in projections),
        seen=np.array([p.seen for p in projections], bool),
        vectors=_stacked(projections, len(centre)),
        biases=np.array([p.bias for p in projections], np.float32),
        centre=centre,
        metric=serving.metric,
        transform=serving.transform,
        servable=serving.servable,
        calibration=serving.calibration,
        examples=np.array(examples, np.int64) if len(examples) == len(projections) else None,
        incremental=serving.incremental,
        encoder=encoder or None,
    )


def _stacked(projections: list[Projection], features: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    if not projections:
        return np.zeros((0, features), np.float32)
    return np.stack([p.vector for p in projections])


def _tampered(bus: Bus, record: LedgerRecord, what: str) -> BrokenLedger:
    return BrokenLedger(
        f"{bus.url}: generation {record.number} {what}; somebody else changed the projections: check who may write to "
        "that topic"
    )
