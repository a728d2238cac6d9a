"""`broker start|stop`: a single-node Apache Kafka on this machine, for trials. Needs Java and Maven."""

from __future__ import annotations

import argparse
from pathlib import Path

from stream_cgzsl.demo import broker


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("start", "stop"))
    parser.add_argument("--port", type=int, default=9092, help="of the broker (default: 9092)")
    default = broker.default_directory()
    parser.add_argument("--directory", type=Path, default=default, help=f"for its data and log (default: {default})")


def run(arguments: argparse.Namespace) -> None:
    if arguments.action == "start":
        address = broker.start_detached(arguments.port, arguments.directory)
        print(f"Kafka is running at {address}: use --bus kafka://{address}; stop it with: stream-cgzsl broker stop")
    else:
        stopped = broker.stop_detached(arguments.directory)
        print("Kafka is stopped" if stopped else f"no broker is running in {arguments.directory}")
