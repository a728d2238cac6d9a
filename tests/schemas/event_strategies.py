"""Any event there can be, for property tests."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from stream_cgzsl.schemas import (
    ENCODER_KEY,
    ROLES,
    Attribute,
    Boundary,
    Candidate,
    DeadLetter,
    EncoderChunk,
    EncoderLayer,
    Evaluation,
    Event,
    Feature,
    FeedTask,
    Genesis,
    Holdout,
    LedgerRecord,
    Prediction,
    Prequential,
    Projection,
    Published,
    Range,
    Retirement,
    Rollback,
    Sample,
    Serving,
    StateChunk,
    Update,
    Withdrawal,
)
from stream_cgzsl.schemas.event import Model

# every character but controls, line and paragraph separators, and halves of surrogate pairs
names = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=256)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
counts = st.integers(0, 2**63 - 1)
positives = st.integers(1, 2**63 - 1)
partitions = st.integers(0, 2**31 - 1)
numbers = st.floats(allow_nan=False, allow_infinity=False)
shares = st.floats(0, 1)
digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
facts = st.dictionaries(
    texts,
    st.recursive(
        st.none() | st.booleans() | st.integers() | numbers | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)
vectors = st.sampled_from([(np.float32, 32), (np.float16, 16)]).flatmap(
    lambda kind: hnp.arrays(
        kind[0], st.integers(1, 40), elements=st.floats(allow_nan=False, allow_infinity=False, width=kind[1])
    )
)
_offsets = st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
times = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=_offsets)


def _builds(model: type[Model], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Like `st.builds`, but every field must be given: otherwise a new one would never be tested."""
    assert set(fields) == set(model.model_fields), (model, set(fields) ^ set(model.model_fields))
    return st.builds(model, **fields)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


_vector_fields: dict[str, st.SearchStrategy[Any]] = {"vector": vectors, "id": _maybe(names), "time": _maybe(times)}
_published = _builds(Published, first=counts, end=counts, count=counts, sha256=digests)
_ranges = _builds(
    Range,
    start=counts,
    end=counts,
    accepted=counts,
    duplicate=counts,
    late=counts,
    lost=counts,
    dead=st.dictionaries(names, counts, max_size=2),
)

EVENTS: dict[type[Event], st.SearchStrategy[Event]] = {
    Attribute: _builds(Attribute, class_id=names, name=_maybe(names), **_vector_fields),
    Retirement: _builds(Retirement, class_id=names),
    Feature: _builds(Feature, class_id=names, **_vector_fields),
    Holdout: _builds(Holdout, class_id=names, **_vector_fields),
    Sample: _builds(Sample, request_id=names, **_vector_fields),
    Boundary: _builds(
        Boundary,
        reason=names,
        cut=_maybe(st.dictionaries(names, st.dictionaries(partitions, counts, max_size=3), max_size=3)),
        feed=_maybe(_builds(FeedTask, name=names, task=st.integers(1, 2**63 - 1))),
    ),
    Rollback: _builds(Rollback, to=counts, reason=names),
    EncoderChunk: _builds(
        EncoderChunk,
        chunk=st.integers(0, 10**9 - 1).map(ENCODER_KEY.format),
        generation=counts,
        data=st.binary(min_size=1, max_size=20),
    ),
    LedgerRecord: _builds(
        LedgerRecord,
        number=counts,
        kind=st.sampled_from(["genesis", "train", "describe", "failed", "rollback"]),
        policy=_maybe(names),
        reason=names,
        topic_ids=st.dictionaries(names, names, max_size=2),
        genesis=_maybe(
            _builds(
                Genesis,
                attributes=st.integers(1, 2**63 - 1),
                features=st.integers(1, 2**63 - 1),
                signed=st.booleans(),
                shared=_maybe(st.booleans()),
                seed=st.integers(-(2**63), 2**63 - 1),
            )
        ),
        ranges=st.dictionaries(names, st.dictionaries(partitions, _ranges, max_size=2), max_size=2),
        holdout=st.dictionaries(partitions, counts, max_size=2),
        inputs=_maybe(digests),
        configuration=_maybe(facts),
        configuration_digest=digests,
        code=names,
        environment=facts,
        seen=counts,
        unseen=counts,
        generation=_maybe(digests),
        serving=_maybe(
            _builds(
                Serving,
                servable=st.booleans(),
                metric=names,
                transform=names,
                centre=st.binary(max_size=20),
                calibration=facts,
                incremental=st.booleans(),
                encoder=st.tuples(_builds(EncoderLayer, outputs=positives, inputs=positives, activation=names)),
            )
        ),
        projections=_maybe(_published),
        encoder=_maybe(_published),
        update=_maybe(_builds(Update, base=counts, whole=counts, first=counts, end=counts, rows=counts)),
        state=_maybe(_published),
        prequential=_maybe(_builds(Prequential, rows=counts, seen=_maybe(shares), unseen=_maybe(shares))),
        losses=st.dictionaries(names, numbers, max_size=2),
        error=_maybe(texts),
        to=_maybe(counts),
        until_ms=_maybe(counts),
        configured=_maybe(counts),
        late_ms=_maybe(counts),
        remembered=_maybe(counts),
    ),
    Projection: _builds(
        Projection,
        class_id=names,
        vector=vectors,
        bias=numbers,
        seen=st.booleans(),
        generation=counts,
        name=_maybe(names),
        examples=_maybe(counts),
    ),
    Withdrawal: _builds(Withdrawal, class_id=names),
    StateChunk: _builds(
        StateChunk,
        chunk=counts,
        count=st.integers(1, 2**63 - 1),
        window=counts,
        data=st.binary(min_size=1, max_size=100),
    ),
    Prediction: _builds(
        Prediction,
        request_id=names,
        status=st.sampled_from(["ok", "unknown", "no-model", "invalid"]),
        class_id=_maybe(names),
        score=_maybe(numbers),
        margin=_maybe(numbers),
        top=st.lists(_builds(Candidate, class_id=names, score=numbers, seen=st.booleans()), max_size=3).map(tuple),
        generation=_maybe(counts),
        error=_maybe(texts),
    ),
    Evaluation: _builds(
        Evaluation,
        generation=counts,
        digest=digests,
        samples=counts,
        seen=_maybe(shares),
        unseen=_maybe(shares),
        harmonic=_maybe(shares),
        forgetting=_maybe(shares),
        area=_maybe(shares),
        per_class=st.dictionaries(names, shares, max_size=3),
        best=st.dictionaries(names, shares, max_size=3),
        movement=st.dictionaries(names, numbers, max_size=3),
        by_examples=st.dictionaries(names, shares, max_size=3),
    ),
    DeadLetter: _builds(
        DeadLetter,
        key=_maybe(st.binary(max_size=20)),
        data=st.binary(max_size=100),
        size=counts,
        sha256=digests,
        reason=names,
        detail=texts,
        topic=names,
        partition=counts,
        offset=counts,
    ),
}

ROLE_OF: dict[type[Event], str] = {
    event: role.name for role in ROLES.values() for event in (*role.events, *filter(None, [role.tombstone]))
}
