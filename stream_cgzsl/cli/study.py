"""`study KIND DATA`: many runs, one table.

ablation: the paper's eight rows, each without some parts. replay: how many features are replayed. seeds: one learner,
many seeds. settings: static, dynamic and online. learners: every learner on the same stream. few-shot: accuracy against
number of examples, without a stream. Each run has a folder under --out; after an interruption, the same command resumes
and runs nothing twice.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stream_cgzsl.cli.data_flags import SIZES, data_words
from stream_cgzsl.cli.flags import positive
from stream_cgzsl.cli.run import add_run, prepare, request_from, resumable
from stream_cgzsl.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from stream_cgzsl.benchmark.runs.folder import RunFolder
    from stream_cgzsl.benchmark.runs.request import RunRequest
    from stream_cgzsl.benchmark.studies.plans import Study
    from stream_cgzsl.report.document import StudyDocument

KINDS = ("ablation", "replay", "seeds", "settings", "learners", "few-shot")
_OF_PARTS = ("ablation", "replay")  # studies of the parts that only the learners with networks have
_SEVERAL_SEEDS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    add_run(parser)
    parser.add_argument(
        "--seeds", type=positive, metavar="N", help=f"runs per row (default: 1; for `seeds`: {_SEVERAL_SEEDS})"
    )
    parser.add_argument(
        "--counts",
        metavar="N,N,...",
        type=counts,
        help="for `replay`: features per class (default: 0,1,5,... up to 200)",
    )
    parser.add_argument(
        "--learners", type=names, metavar="NAME,...", help="for `few-shot`: which (default: those without networks)"
    )
    parser.add_argument("--draws", type=positive, metavar="N", help="for `few-shot`: how many (default: 5)")
    parser.add_argument(
        "--shots",
        type=counts,
        metavar="K,K,...",
        help="for `few-shot`: numbers of examples (default: 0,1,2,3,5,10,20, as far as the data allows)",
    )


def names(text: str) -> tuple[str, ...]:
    """`evidence,ridge`"""
    return tuple(dict.fromkeys(text.split(",")))


def counts(text: str) -> tuple[int, ...]:
    """`0,10,50`"""
    found = tuple(int(part) for part in text.split(","))
    if min(found) < 0 or len(set(found)) != len(found):
        raise argparse.ArgumentTypeError(f"{text}: expected distinct numbers from 0")
    return found


def run(arguments: argparse.Namespace) -> None:
    from rich.console import Console

    from stream_cgzsl.benchmark.runs.folder import RunFolder
    from stream_cgzsl.benchmark.studies.table import study_table

    folder, console = RunFolder(arguments.out), Console()
    run_kind = _run_few_shot if arguments.kind == "few-shot" else _run_runs
    console.print(study_table(run_kind(arguments, folder, console)))
    console.print(f"files  {folder.study_json}  {folder.report_html}", markup=False, highlight=False, soft_wrap=True)


def _run_runs(arguments: argparse.Namespace, folder: RunFolder, console: Console) -> StudyDocument:
    """A study of many runs."""
    from stream_cgzsl.benchmark.runs.screen import Screen
    from stream_cgzsl.benchmark.studies.study import run_study

    _refuse(arguments, ("learners", "draws", "shots"), "for `study few-shot`")
    base, study = _study_from(arguments)
    seeds = arguments.seeds or (_SEVERAL_SEEDS if arguments.kind == "seeds" else 1)
    command = base.command(folder.path, "study", arguments.kind) + f" --seeds {seeds}"
    if arguments.counts is not None:
        command += f" --counts {_joined(arguments.counts)}"
    with resumable(command), Screen(console) as screen:
        return run_study(study, base, seeds, folder, command, screen)


def _run_few_shot(arguments: argparse.Namespace, folder: RunFolder, console: Console) -> StudyDocument:
    from stream_cgzsl.benchmark.runs.request import setting_words
    from stream_cgzsl.benchmark.studies.few_shot import DECIDING, DRAWS, LEARNERS, run_few_shot

    _refuse(arguments, ("counts",), "for `study replay`")
    given = ("setting", *SIZES, "order_seed", "seeds")
    _refuse(arguments, given, "not for `study few-shot`: it follows its own protocol")
    settings, data = prepare(arguments)
    if settings.model_fields_set & {"learner", "options"}:
        raise UsageError("`study few-shot` runs --learners with their defaults: leave --learner and --options out")
    learners, draws = arguments.learners or LEARNERS, arguments.draws or DRAWS
    words = ["stream-cgzsl", "study", "few-shot", *data_words(arguments), "--out", str(folder.path)]
    words += [*setting_words(settings, *DECIDING), "--learners", _joined(learners), "--draws", str(draws)]
    words += ["--shots", _joined(arguments.shots)] if arguments.shots is not None else []
    command = shlex.join(words)
    with resumable(command), console.status("") as status:
        progress = status.update if console.is_terminal else console.print
        return run_few_shot(data, settings, folder, command, learners, draws, arguments.shots, progress)


def _refuse(arguments: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Raises `UsageError` where one of these flags is given."""
    for name in names:
        if getattr(arguments, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} is {why}")


def _joined(values: Sequence[object]) -> str:
    return ",".join(map(str, values))


def _study_from(arguments: argparse.Namespace) -> tuple[RunRequest, Study]:
    """What all runs of the study have in common, and its rows."""
    from dataclasses import replace

    from stream_cgzsl.benchmark.studies import plans

    base = request_from(arguments)
    given = base.settings.model_fields_set
    if arguments.kind == "learners" and given & {"learner", "options"}:
        raise UsageError("`study learners` runs every learner with its defaults: leave --learner and --options out")
    if arguments.kind in _OF_PARTS and "learner" not in given:
        base = replace(base, settings=base.settings.model_copy(update={"learner": "paper"}))
    if arguments.kind == "replay" and arguments.counts is not None:
        return base, plans.replay(base, arguments.counts)
    _refuse(arguments, ("counts",), "for `study replay`")
    return base, plans.STUDIES[arguments.kind](base)
