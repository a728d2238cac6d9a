"""Around a mistake of the client (seen in 3.0.12): a group join can be forgotten half-way, and the member with it.

A join that begins because the client has learned of the topic's partitions, and not because the group asks for it, is
marked nowhere. When the poll that began it ends too soon, the next one finds nothing to do: the member's share is never
taken, no heartbeat is sent, and it waits for ever.
"""

from __future__ import annotations

from typing import Any


def go_on_joining(client: Any) -> None:
    """To be called before each poll of a group's member: marks a join that is under way as one to go on with."""
    coordinator = client._coordinator
    with coordinator._lock:
        if coordinator.rejoining:
            coordinator.rejoin_needed = True
