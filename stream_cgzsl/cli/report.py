"""`report DIR`: make the page of a run or a study again, from its report.json or study.json."""

from __future__ import annotations

import argparse
from pathlib import Path


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("report", help="make a run's page again from its report.json", description=__doc__)
    parser.add_argument("directory", type=Path, metavar="DIR", help="the folder of a run or a study")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.benchmark.run_folder import RunFolder
    from stream_cgzsl.report.page import render
    from stream_cgzsl.whole_file import write_whole

    folder = RunFolder(arguments.directory)
    write_whole(folder.report_html, render(folder.told()))
    print(folder.report_html)
