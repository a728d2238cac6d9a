"""Whether the topics are still those the ledger was written from: offsets in it mean nothing in any others."""

from __future__ import annotations

from stream_cgzsl.bus import Bus
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import BrokenLedger
from stream_cgzsl.windows.offsets import ends_of
from stream_cgzsl.windows.recorded import Ledger

ROLES = ("windows", "attributes", "features", "control", "holdout")


def topic_ids(bus: Bus, topics: Topics) -> dict[str, str]:
    """The ids of the topics of these roles, those that the bus knows: for the genesis."""
    ids = bus.topic_ids(topics[role] for role in ROLES)
    return {role: id for role in ROLES if (id := ids[topics[role]]) is not None}


def changed_topics(bus: Bus, topics: Topics, ledger: Ledger) -> list[str]:
    """What is wrong with the topics, if anything. A ledger that was copied has topics with other ids, all of them."""
    then, found = ledger.topic_ids, []
    now = topic_ids(bus, topics) if then else {}
    copied = then.get("windows") != now.get("windows")
    for role, id in then.items():
        if not copied and now.get(role) != id:
            found.append(f"{topics[role]} was deleted and made anew (its id was {id} and is {now.get(role)})")
    for role, spans in ends_of(ledger.last).items():
        ends = bus.end_offsets(topics[role])
        for partition, start in spans.items():
            end = ends.get(partition, 0)
            if end < start:
                place = f"{topics[role]}/{partition}"
                found.append(f"{place} ends at {end} and was learned up to {start}: it was cut back, or made anew")
    return found


def refuse_changed_topics(bus: Bus, topics: Topics, ledger: Ledger) -> None:
    """Raises `BrokenLedger` where a topic was made anew or cut back: its new records would be taken for old ones."""
    found = changed_topics(bus, topics, ledger)
    if found:
        raise BrokenLedger(
            f"{bus.url}: {'; '.join(found)}. The offsets in the ledger do not hold any more. Restore the topic from a "
            "copy, or start another stream with another --prefix"
        )
