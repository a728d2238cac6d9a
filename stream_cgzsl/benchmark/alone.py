"""A run without a stream, for learners that keep every example: something to compare with, in the same folder layout."""

from __future__ import annotations

import time

from stream_cgzsl.benchmark.run_document import Results, accuracies, write_results
from stream_cgzsl.benchmark.run_folder import RunFolder, Spent
from stream_cgzsl.benchmark.run_request import RunRequest
from stream_cgzsl.benchmark.scores import Scoring
from stream_cgzsl.benchmark.settings import as_used, windows
from stream_cgzsl.environment import choose_device, environment
from stream_cgzsl.generation import Generation
from stream_cgzsl.learners import create
from stream_cgzsl.report.document import RunDocument, WindowLine
from stream_cgzsl.windows.window import Window

NO_BUS = "none: the library alone"


def run_alone(request: RunRequest, folder: RunFolder) -> RunDocument:
    """As `running.run`, but a run that is stopped begins again. Raises `UsageError` where the folder is of another run."""
    request.check()
    with folder.held():
        identity = request.identity()
        folder.require(identity)
        if folder.finished():
            return folder.document()
        folder.write_request(identity, Spent())
        started = time.monotonic()
        device = choose_device(request.settings.device)
        space = request.data.space(request.settings.seed, request.settings.shared)
        learner = create(request.settings.learner, space, request.settings.options, device)
        used = as_used(request.data, request.plan, request.order)
        scoring = Scoring({class_id: used.test(class_id) for class_id in used.class_ids})
        learned: list[tuple[Window, Generation, float]] = []
        for window in windows(request.data, request.plan, request.order):
            began = time.monotonic()
            generation = learner.fit(window)
            learned.append((window, generation, time.monotonic() - began))
            scoring.add(generation)
        readings = scoring.readings()
        lines = [
            WindowLine(
                number=window.number,
                described=len(window.described),
                features=sum(examples.count for examples in window.features.values()),
                seen=int(generation.seen.sum()),
                unseen=int((~generation.seen).sum()),
                digest=generation.digest,
                prequential_seen=None,
                prequential_unseen=None,
                seconds_training=round(seconds, 4),
                **accuracies(readings, place),
            )
            for place, (window, generation, seconds) in enumerate(learned)
        ]
        spent = Spent(time.monotonic() - started)
        return write_results(request, folder, Results(readings, lines, environment(device), NO_BUS), spent)
