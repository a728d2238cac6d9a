"""`broker start|stop`: a single-node Apache Kafka on this machine, to try things with. Needs Java and Maven."""

from __future__ import annotations

import argparse
from pathlib import Path

from stream_cgzsl.bus import broker


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("broker", help="start or stop a Kafka broker to try things with", description=__doc__)
    parser.add_argument("action", choices=("start", "stop"))
    parser.add_argument("--port", type=int, default=9092, help="(default: 9092)")
    usual = broker.default_directory()
    parser.add_argument("--directory", type=Path, default=usual, help=f"its data and log (default: {usual})")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    if arguments.action == "start":
        address = broker.start_detached(arguments.port, arguments.directory)
        print(f"Kafka is running at {address}: use --bus kafka://{address}; end it with: stream-cgzsl broker stop")
    else:
        ran = broker.stop_detached(arguments.directory)
        print("Kafka is stopped" if ran else f"no broker runs in {arguments.directory}")
