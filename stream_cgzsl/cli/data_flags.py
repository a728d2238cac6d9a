"""The flags of every command that takes a data set: which data, in which setting and order."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from stream_cgzsl.cli.flags import positive
from stream_cgzsl.errors import UsageError

if TYPE_CHECKING:
    from stream_cgzsl.benchmark.datasets import Dataset
    from stream_cgzsl.benchmark.protocols import AnyPlan

SETTINGS = ("static", "dynamic", "online", "trickle")
_DEFAULT_SETTING = "online"
SPLITS = ("official", "published")

SIZES = ("tasks", "seen", "unseen", "window_size", "never_share")
"""The flags that change a plan, as argparse stores them."""


def add_data(parser: argparse.ArgumentParser) -> None:
    """Adds DATA and its flags. `--features` is stored as `feature_file`: there is a setting called features."""
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
    parser.add_argument("--splits", metavar="NAME", help="which file of attributes and splits (default: att_splits)")
    parser.add_argument(
        "--setting", choices=SETTINGS, help=f"how classes arrive and become seen (default: {_DEFAULT_SETTING})"
    )
    parser.add_argument(
        "--split",
        choices=SPLITS,
        help="in the static setting: the official rows, or those of the published loader (default: official)",
    )
    parser.add_argument(
        "--tasks",
        "--windows",
        type=positive,
        metavar="N",
        help="how many (default: as in the paper, or as the classes allow)",
    )
    parser.add_argument("--seen", type=positive, help="new seen classes per task, one held back in the online setting")
    parser.add_argument("--unseen", type=counting, help="new classes per task that are never learned")
    parser.add_argument("--window-size", type=positive, metavar="N", help="examples per window in the trickle setting")
    parser.add_argument(
        "--never-share",
        type=float,
        metavar="F",
        help="share of the classes that never get an example in the trickle setting (default: 0.2)",
    )
    parser.add_argument(
        "--order-seed",
        type=counting,
        metavar="SEED",
        help="permutes the classes (default: file order); draws the trickle (default: 0)",
    )


def counting(text: str) -> int:
    """The type of a flag that may be 0."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


def data_from(arguments: argparse.Namespace) -> Dataset:
    """The data set the flags ask for. Raises `UsageError`."""
    from stream_cgzsl.benchmark.datasets import load

    published = arguments.split == "published"
    if published and arguments.setting != "static":
        raise UsageError("--split published is of the static setting: give --setting static, or leave it out")
    data = load(arguments.dataset, arguments.feature_file, arguments.splits, arguments.data)
    return data.split_as_published() if published else data


def data_words(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The words of the command line that name the data set."""
    files = {"--features": arguments.feature_file, "--splits": arguments.splits, "--data": arguments.data}
    files["--split"] = arguments.split if arguments.split != "official" else None
    return arguments.dataset, *(word for flag, value in files.items() if value for word in (flag, value))


def plan_from(arguments: argparse.Namespace, data: Dataset) -> AnyPlan:
    """The plan the flags ask for. Raises `UsageError`."""
    from stream_cgzsl.benchmark.protocols import plan_for
    from stream_cgzsl.benchmark.trickle import TRICKLE, trickle_for

    setting = arguments.setting or _DEFAULT_SETTING
    for name in ("seen", "unseen") if setting == TRICKLE else ("window_size", "never_share"):
        if getattr(arguments, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} has no meaning in the {setting} setting: leave it out")
    if setting == TRICKLE:
        return trickle_for(data, arguments.tasks, arguments.window_size, arguments.never_share)
    return plan_for(data, setting, arguments.tasks, arguments.seen, arguments.unseen)
