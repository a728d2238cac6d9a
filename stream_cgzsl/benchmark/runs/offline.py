"""A run without a stream, for upper bounds: learners that keep every example. The folder has the same files."""

from __future__ import annotations

import time

from stream_cgzsl.benchmark import scores
from stream_cgzsl.benchmark.protocols import as_used, tasks
from stream_cgzsl.benchmark.runs.folder import RunFolder, Spent
from stream_cgzsl.benchmark.runs.request import RunRequest
from stream_cgzsl.benchmark.runs.results import Results, window_figures, write_results
from stream_cgzsl.learners import create
from stream_cgzsl.report.document import RunDocument, WindowLine
from stream_cgzsl.runtime.devices import choose_device
from stream_cgzsl.runtime.environment import environment

NO_BUS = "none: the library alone"


def run_offline(request: RunRequest, folder: RunFolder) -> RunDocument:
    """As `run`, except that an interrupted run starts over. Raises `UsageError` where the folder has another run."""
    request.check()
    data, plan, order, settings = request.data, request.plan, request.order, request.settings
    with folder.held():
        identity = request.identity()
        folder.require(identity)
        if folder.finished():
            return folder.document()
        folder.write_request(identity, Spent())
        started = time.monotonic()
        device = choose_device(settings.device)
        learner = create(settings.learner, data.space(settings.seed, settings.shared), settings.options, device)
        run = scores.run(learner, data, plan, order)
        used = as_used(data, plan, order)
        lines = [
            WindowLine(
                number=task.number,
                described=len(task.described),
                features=sum(len(task.examples(used, class_id)) for class_id in task.learned),
                seen=int(generation.seen.sum()),
                unseen=int((~generation.seen).sum()),
                digest=generation.digest,
                prequential_seen=None,
                prequential_unseen=None,
                seconds_training=round(seconds, 4),
                **window_figures(run.readings, index),
            )
            for index, (task, generation, seconds) in enumerate(
                zip(tasks(data, plan, order), run.generations, run.seconds, strict=True)
            )
        ]
        spent = Spent(time.monotonic() - started)
        return write_results(request, folder, Results(run.readings, lines, environment(device), NO_BUS), spent)
