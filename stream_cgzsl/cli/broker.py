"""`broker start|stop`: Apache Kafka on this machine, one broker or a cluster, for trials. Needs Java and Maven."""

from __future__ import annotations

import argparse
from pathlib import Path

from stream_cgzsl.cli.flags import positive
from stream_cgzsl.demo import broker, cluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("start", "stop"))
    parser.add_argument("--brokers", type=positive, default=1, help="how many (default: 1; a cluster has 3 or more)")
    parser.add_argument("--port", type=int, default=9092, help="of the first broker (default: 9092)")
    default = broker.default_directory()
    parser.add_argument("--directory", type=Path, default=default, help=f"for data and logs (default: {default})")


def run(arguments: argparse.Namespace) -> None:
    directory = arguments.directory
    if arguments.action == "start":
        if arguments.brokers == 1:
            address = broker.start_detached(arguments.port, directory)
        else:
            address = cluster.start_detached(arguments.port, directory, arguments.brokers)
        print(f"Kafka is running at {address}: use --bus kafka://{address}; stop it with: stream-cgzsl broker stop")
    else:
        stopped = broker.stop_detached(directory) | cluster.stop_detached(directory)
        print("Kafka is stopped" if stopped else f"no broker is running in {directory}")
