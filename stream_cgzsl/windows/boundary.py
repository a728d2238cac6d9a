"""Ending a task: everything acknowledged so far belongs to the window that closes here."""

from __future__ import annotations

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.schemas import Boundary, encode
from stream_cgzsl.windows.cuts import DATA_ROLES


def send_boundary(bus: Bus, topics: Topics, reason: str = "boundary") -> Boundary:
    """Writes a boundary at the ends of the topics now. Producers must have flushed before. Returns when acknowledged."""
    cut = {role: bus.end_offsets(topics[role]) for role in DATA_ROLES}  # features before attributes, see DATA_ROLES
    boundary = Boundary(reason=reason, cut=cut)
    with bus.writer() as writer:
        writer.send(topics["control"], encode(boundary))
        writer.flush()
    return boundary
