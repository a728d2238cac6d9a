"""`demo`: watch classes being described, recognised and learned on a new stream. Takes half a minute."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from stream_cgzsl.cli.flags import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bus", help="a bus, such as kafka://localhost:9092 (default: a new SQLite file)")
    parser.add_argument("--prefix", help="of the topics (default: demo, with --bus also the time)")
    parser.add_argument(
        "--partitions", type=positive, default=2, help="partitions of the topics that may have several (default: 2)"
    )
    parser.add_argument("--learner", help="which learner (default: that of `learn`)")


def run(arguments: argparse.Namespace) -> None:
    from rich.console import Console

    from stream_cgzsl.demo.scenario import Demo
    from stream_cgzsl.demo.screen import Screen, next_steps, summary

    directory = Path(tempfile.mkdtemp(prefix="stream-cgzsl-demo-"))
    url = arguments.bus or f"sqlite:///{directory}/demo.db"
    prefix = arguments.prefix or (f"demo-{int(time.time())}" if arguments.bus else "demo")
    console = Console()
    with Screen(console) as screen:
        result = Demo(url, prefix, directory, arguments.partitions, arguments.learner).run(screen)
    console.print(summary(result))
    console.print(next_steps(url, prefix, directory), soft_wrap=True, highlight=False)
