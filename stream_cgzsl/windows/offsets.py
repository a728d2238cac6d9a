"""Offsets by role and partition: where windows start and end."""

from __future__ import annotations

from stream_cgzsl.schemas import LedgerRecord

Offsets = dict[int, int]
"""An offset per partition."""

Ends = dict[str, Offsets]
"""Per role and partition: the first offset that is no longer in the window."""

DATA_ROLES = ("features", "attributes", "holdout")
"""In the order their ends are asked for: a class described before its first feature is then never unknown."""


def ends_of(record: LedgerRecord) -> Ends:
    """Where a window ended, which is where the next one starts."""
    ends = {role: {p: span.end for p, span in spans.items()} for role, spans in record.ranges.items()}
    ends["holdout"] = dict(record.holdout)
    return ends
