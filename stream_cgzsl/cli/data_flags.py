"""Flags that say which data, in which setting and order: the same for every command that takes a data set."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from stream_cgzsl.cli.flags import positive

if TYPE_CHECKING:
    from stream_cgzsl.benchmark.datasets import Dataset
    from stream_cgzsl.benchmark.settings import Plan

SETTINGS = ("static", "dynamic", "online")


def add_data(parser: argparse.ArgumentParser, setting: str = "online") -> None:
    """Adds DATA and its flags. `--features` is kept as `feature_file`: a setting has the same name."""
    parser.add_argument(
        "dataset", metavar="DATA", help="a folder, the name of one in --data, or synthetic:classes=40,features=64,..."
    )
    parser.add_argument("--data", metavar="FOLDER", help="where data sets are (default: CGZSL_DATA)")
    parser.add_argument(
        "--features",
        dest="feature_file",
        metavar="NAME",
        help="which file of features (default: res101, or the only one)",
    )
    parser.add_argument("--splits", metavar="NAME", help="which file of class vectors (default: att_splits)")
    parser.add_argument(
        "--setting", choices=SETTINGS, default=setting, help=f"how classes come and become seen (default: {setting})"
    )
    parser.add_argument("--tasks", type=positive, help="how many (default: the paper's, or what the classes allow)")
    parser.add_argument("--seen", type=positive, help="new seen classes a task, one held back in the online setting")
    parser.add_argument("--unseen", type=counting, help="new classes a task that are never learned")
    parser.add_argument(
        "--order-seed", type=counting, metavar="SEED", help="permutes the classes (default: as in the files)"
    )


def counting(text: str) -> int:
    """The type of a flag that may be 0."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


def data_from(arguments: argparse.Namespace) -> tuple[Dataset, Plan]:
    """The data set and the plan the flags ask for. Raises `UsageError`."""
    from stream_cgzsl.benchmark.datasets import load
    from stream_cgzsl.benchmark.settings import plan_for

    data = load(arguments.dataset, arguments.feature_file, arguments.splits, arguments.data)
    return data, plan_for(data, arguments.setting, arguments.tasks, arguments.seen, arguments.unseen)
