"""A process that writes to a bus file until it is killed, and prints what was acknowledged.

`python sqlite_victim.py URL` alternates flushes of three records to `single` with transactions of four records to
`left` and `right`. The key of a record is the number of its round, continued from what is in the file.
"""

from __future__ import annotations

import sys
from itertools import count

from stream_cgzsl.bus import connect
from stream_cgzsl.schemas.message import Message


def main(url: str) -> None:
    with connect(url) as bus, bus.writer() as writer, bus.publisher("victim") as publisher:
        for number in count(bus.end_offsets("left")[0]):
            for part in range(3):
                writer.send("single", Message(b"%d" % number, b"%d" % part + bytes(3000)))
            writer.flush()
            print(f"single {number}", flush=True)
            publisher.begin()
            for topic in ("left", "right", "right", "left"):
                publisher.send(topic, Message(b"%d" % number, bytes(3000)))
                publisher.flush()
            publisher.commit("victims", {})
            print(f"both {number}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
