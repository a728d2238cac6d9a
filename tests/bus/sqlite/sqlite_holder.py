"""A process that holds something of a bus file until it is stopped or killed.

`python sqlite_holder.py URL transaction` opens a transaction; `member` reads topic `t` as a member of group `g`, prints
`holding` once it has read a record, and then tries to commit offset 1 every time a line arrives.
"""

from __future__ import annotations

import sys
import time

from stream_cgzsl.bus import TopicPartition, connect
from stream_cgzsl.schemas.message import Message


def main(url: str, what: str) -> None:
    with connect(url) as bus:
        if what == "transaction":
            with bus.publisher("holder") as publisher:
                publisher.begin()
                publisher.send("t", Message(None, b"x"))
                print("holding", flush=True)
                time.sleep(600)
        with bus.subscribe("t", "g") as member:
            while not member.poll(1.0):
                pass
            print("holding", flush=True)
            for _ in sys.stdin:
                member.commit({TopicPartition("t", 0): 1})
                print(len(member.poll(0.0)), len(member.assignment()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
