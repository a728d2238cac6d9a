"""`study KIND DATA`: many runs, one table.

ablation: the paper's eight rows, parts of the system left out. replay: how many features are replayed. seeds: one
learner, many seeds. settings: static, dynamic and online. learners: every learner on the same stream. Each run has a
folder under --out; the same command goes on after an interruption and runs nothing twice.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from stream_cgzsl.cli.flags import positive
from stream_cgzsl.cli.run import add_run, going_on, request_from
from stream_cgzsl.errors import UsageError

if TYPE_CHECKING:
    from stream_cgzsl.benchmark.run_request import RunRequest
    from stream_cgzsl.benchmark.studies import Study

KINDS = ("ablation", "replay", "seeds", "settings", "learners")
_NETWORKED = ("ablation", "replay")
_SEVERAL_SEEDS = 5


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("study", help="many runs, one table", description=__doc__)
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    add_run(parser)
    parser.add_argument(
        "--seeds", type=positive, metavar="N", help=f"runs of each row (default: 1; of `seeds`: {_SEVERAL_SEEDS})"
    )
    parser.add_argument(
        "--counts", metavar="N,N,...", type=counts, help="of `replay`: features a class (default: 0,1,5,... up to 200)"
    )
    parser.set_defaults(run=run)


def counts(text: str) -> tuple[int, ...]:
    """`0,10,50`"""
    found = tuple(int(part) for part in text.split(","))
    if min(found) < 0 or len(set(found)) != len(found):
        raise argparse.ArgumentTypeError(f"{text}: distinct numbers from 0 are expected")
    return found


def run(arguments: argparse.Namespace) -> None:
    from rich.console import Console

    from stream_cgzsl.benchmark.run_folder import RunFolder
    from stream_cgzsl.benchmark.run_screen import Screen
    from stream_cgzsl.benchmark.study_running import run_study
    from stream_cgzsl.benchmark.study_table import study_table

    base, study = _asked(arguments)
    seeds = arguments.seeds or (_SEVERAL_SEEDS if arguments.kind == "seeds" else 1)
    folder = RunFolder(arguments.out)
    command = base.command(folder.path, "study", arguments.kind) + f" --seeds {seeds}"
    if arguments.counts is not None:
        command += f" --counts {','.join(map(str, arguments.counts))}"
    console = Console()
    with going_on(command), Screen(console) as screen:
        document = run_study(study, base, seeds, folder, command, screen)
    console.print(study_table(document))
    console.print(f"files  {folder.study_json}  {folder.report_html}", markup=False, highlight=False, soft_wrap=True)


def _asked(arguments: argparse.Namespace) -> tuple[RunRequest, Study]:
    """What every run of the study has in common, and its rows."""
    from dataclasses import replace

    from stream_cgzsl.benchmark import studies

    base = request_from(arguments)
    given = base.settings.model_fields_set
    if arguments.kind == "learners" and given & {"learner", "options"}:
        raise UsageError("`study learners` runs every learner with its defaults: leave --learner and --options out")
    if arguments.kind in _NETWORKED and "learner" not in given:
        base = replace(base, settings=base.settings.model_copy(update={"learner": "adversarial"}))
    if arguments.kind == "replay" and arguments.counts is not None:
        return base, studies.replay(base, arguments.counts)
    if arguments.counts is not None:
        raise UsageError("--counts is for `study replay`")
    return base, studies.STUDIES[arguments.kind](base)
