"""`demo`: watch classes being described, recognised, learned and not forgotten. Needs nothing; takes half a minute."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from stream_cgzsl.cli.flags import positive


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("demo", help="everything in one go, in half a minute", description=__doc__)
    parser.add_argument("--bus", help="a bus to run on, such as kafka://localhost:9092 (default: a new SQLite file)")
    parser.add_argument("--prefix", help="of the topics (default: demo, with the time where the bus is shared)")
    parser.add_argument(
        "--partitions", type=positive, default=2, help="of the topics that may have several (default: 2)"
    )
    parser.add_argument("--learner", help="which learner (default: the default one)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from rich.console import Console

    from stream_cgzsl.demo.screen import Screen, last_page, next_steps
    from stream_cgzsl.demo.story import Story

    directory = Path(tempfile.mkdtemp(prefix="stream-cgzsl-demo-"))
    url = arguments.bus or f"sqlite:///{directory}/demo.db"
    prefix = arguments.prefix or (f"demo-{int(time.time())}" if arguments.bus else "demo")
    console = Console()
    with Screen(console) as screen:
        ending = Story(url, prefix, directory, arguments.partitions, arguments.learner).tell(screen)
    console.print(last_page(ending))
    console.print(next_steps(url, prefix, directory), soft_wrap=True, highlight=False)
