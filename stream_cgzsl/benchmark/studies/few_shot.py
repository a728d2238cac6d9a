"""The few-shot study: accuracy against number of examples, one curve per learner. It runs the library, not a stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pydantic import ValidationError

from stream_cgzsl.benchmark.datasets import Dataset
from stream_cgzsl.benchmark.few_shot import SHOTS, draw, few_shot, mean_curve, shots_for
from stream_cgzsl.benchmark.runs.folder import RunFolder, Spent
from stream_cgzsl.benchmark.runs.request import data_identity
from stream_cgzsl.benchmark.studies.study import write_study
from stream_cgzsl.errors import UsageError
from stream_cgzsl.learners import create
from stream_cgzsl.learners.interface import Learner
from stream_cgzsl.report.document import FewShotCurve, Shot, StudyDocument
from stream_cgzsl.runtime.atomic_write import write_atomically
from stream_cgzsl.runtime.devices import choose_device
from stream_cgzsl.runtime.environment import environment
from stream_cgzsl.runtime.settings import Settings

LEARNERS = ("evidence", "episodic", "closed-form", "ridge")
"""The learners that are compared, unless others are given."""

DRAWS = 5


DECIDING = ("seed", "device", "threads", "shared")
"""The settings that decide the curves."""


def run_few_shot(
    data: Dataset,
    settings: Settings,
    folder: RunFolder,
    command: str,
    learners: Sequence[str] = LEARNERS,
    draws: int = DRAWS,
    shots: Sequence[int] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> StudyDocument:
    """Runs the learners whose curve is not in the folder yet, and writes the study. Draw n has the seed n.

    Raises `UsageError` for an unknown learner, where the folder has another study, and where the data has too few
    unseen classes or rows.
    """
    chosen = shots_for(data, shots)
    device = choose_device(settings.device)
    made = {name: create(name, data.space(settings.seed, settings.shared), device=device) for name in learners}
    identity = {
        "study": "few-shot",
        **data_identity(data),
        **settings.model_dump(mode="json", include=set(DECIDING)),
        "draws": draws,
        "shots": chosen,
    }
    with folder.held():
        folder.require(identity)
        folder.write_request(identity, Spent())
        curves = tuple(_curve(folder, learner, data, draws, chosen, progress) for learner in made.values())
        document = StudyDocument(
            study="few-shot",
            title="What the first examples of a class do",
            question="How does the accuracy of a described class change with its first examples, and that of other "
            "classes? The library alone, run without a stream.",
            dataset=data.name,
            extractor=data.extractor,
            setting="few-shot",
            command=command,
            environment=environment(device),
            draws=draws,
            curves=curves,
        )
        write_study(folder, document)
    return document


def _curve(
    folder: RunFolder,
    learner: Learner,
    data: Dataset,
    draws: int,
    shots: Sequence[int],
    progress: Callable[[str], None],
) -> FewShotCurve:
    """The curve of an untrained learner; from its file if an earlier start has finished it."""
    name = learner.name
    file = folder.path / f"few-shot-{name}.json"
    if file.exists():
        try:
            return FewShotCurve.model_validate_json(file.read_bytes())
        except (OSError, ValidationError) as error:
            raise UsageError(f"{file}: not a few-shot curve; delete it to run {name} again") from error
    started = time.monotonic()
    progress(f"{name}: learning the seen classes")
    found: list[tuple[Shot, ...]] = []
    for curve in few_shot(learner, data, (draw(data, seed, max(*SHOTS, *shots)) for seed in range(draws)), shots):
        found.append(curve)
        progress(f"{name}: {len(found)} of {draws} draws")
    mean = FewShotCurve(learner=name, shots=mean_curve(found), seconds=round(time.monotonic() - started, 3))
    write_atomically(file, mean.model_dump_json(indent=1) + "\n")
    return mean
