"""`report DIR`: write the page of a run or study again, from its report.json or study.json."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the folder of a run or study")


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.benchmark.runs.folder import RunFolder
    from stream_cgzsl.report.page import render
    from stream_cgzsl.runtime.atomic_write import write_atomically

    folder = RunFolder(arguments.directory)
    write_atomically(folder.report_html, render(folder.run_or_study()))
    print(folder.report_html)
