"""A run: feed a data set to a stream task by task, learn it and evaluate it, in one process and through a bus.

Learner and evaluator are the workers of `learn` and `evaluate`, each in a thread. All progress is on the bus: a run
that is started again reads it there and resumes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from stream_cgzsl.benchmark.feeding import Feeder
from stream_cgzsl.benchmark.protocols import as_used
from stream_cgzsl.benchmark.runs.folder import RunFolder
from stream_cgzsl.benchmark.runs.pictures import curve_points, followed_classes, replay_map
from stream_cgzsl.benchmark.runs.progress import RunProgress, TaskResult
from stream_cgzsl.benchmark.runs.request import RunRequest
from stream_cgzsl.benchmark.runs.results import Results, window_lines, write_results
from stream_cgzsl.benchmark.runs.similarities import Similarities
from stream_cgzsl.bus import Bus, TopicPartition, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.errors import UsageError
from stream_cgzsl.evaluation.answers import classify, in_batches
from stream_cgzsl.evaluation.curve import seen_unseen_curve
from stream_cgzsl.history.restore import Restorer
from stream_cgzsl.learners import BOUNDS
from stream_cgzsl.report.document import RunDocument
from stream_cgzsl.runtime.devices import choose_device
from stream_cgzsl.runtime.metrics import EvaluatorMetrics, LearnerMetrics
from stream_cgzsl.schemas import Evaluation, LedgerRecord, decode
from stream_cgzsl.serving.generation_io import GenerationLoader, load_generation
from stream_cgzsl.windows.ledger import Incomplete
from stream_cgzsl.windows.recorded import Ledger
from stream_cgzsl.workers.evaluator import EvaluatorWorker
from stream_cgzsl.workers.in_thread import InThread
from stream_cgzsl.workers.learner import LearnerWorker

_TASKS_AHEAD = 2
"""Tasks on the bus that may be waiting to be learned: while one is trained, the next is fed."""

_POLL_SECONDS = 0.1


class Observer(Protocol):
    """Receives the progress of runs, for example to show it on a screen."""

    def run_started(self, request: RunRequest, learned: int) -> None:
        """A run starts, or resumes with `learned` of its tasks in the ledger."""

    def progress(self, text: str) -> None:
        """What the run is doing now, such as `learning task 3`."""

    def task_done(self, result: TaskResult, seconds: float | None) -> None:
        """A task is learned and evaluated; `seconds` is its training time, where that is known."""


def run(request: RunRequest, folder: RunFolder, observer: Observer) -> RunDocument:
    """Runs what is missing and writes the folder's files. A finished run is not run again.

    Raises `UsageError` where the folder or the stream belongs to another run, and whatever ends a worker.
    """
    request.check()
    if request.settings.learner in BOUNDS:
        raise UsageError(
            f"{request.settings.learner!r} keeps every example and cannot be run on a stream; `study learners` runs it "
            "without one"
        )
    with folder.held():
        identity = request.identity()
        folder.require(identity)
        if folder.finished():
            return folder.document()
        with connect(request.bus or folder.own_bus) as bus:
            running = _Run(request, identity, folder, bus, observer)
            running.claim()
            return running.run()


class _Run:
    def __init__(
        self, request: RunRequest, identity: Mapping[str, Any], folder: RunFolder, bus: Bus, observer: Observer
    ) -> None:
        self._request = request
        self._identity = identity
        self._data = as_used(request.data, request.plan, request.order)
        self._folder = folder
        self._bus = bus
        self._observer = observer
        self._settings = request.worker_settings(request.bus or folder.own_bus)
        self._topics = Topics(self._settings.prefix, self._settings.topics)
        self._feeder = Feeder(bus, self._topics, request.data, request.plan, request.order)
        self._progress = RunProgress(self._feeder.tasks)
        self._loader = GenerationLoader(bus, self._topics)
        self._similarities = Similarities(
            {class_id: self._data.test(class_id) for class_id in followed_classes(self._feeder.tasks, self._data)}
        )
        self._spent = folder.spent()
        self._started = time.monotonic() - self._spent.total  # as if earlier starts had run without a break

    def claim(self) -> None:
        """Makes the folder this run's. Raises `UsageError` where the stream belongs to another run."""
        recorded = Ledger.open(self._bus, self._topics)
        records = 0 if recorded is None else recorded.last.number + 1
        if self._folder.is_new() and records:
            raise UsageError(
                f"{self._bus.url}: the stream {self._topics.prefix!r} has a ledger of {records} records, and "
                f"{self._folder.path} has no run that wrote it; choose another --prefix, or that run's --out"
            )
        self._save()
        self._observer.run_started(self._request, max(records - 1, 0))

    def run(self) -> RunDocument:
        """Returns when every task is learned and evaluated, and the folder's files are written."""

        def committed(record: LedgerRecord, seconds: Mapping[str, float]) -> None:
            self._spent.training[record.number] = seconds["train"]

        def learner(bus: Bus, stop: threading.Event) -> LearnerWorker:
            return LearnerWorker(
                bus, self._topics, self._settings, LearnerMetrics(), stop, patient=False, committed=committed
            )

        def evaluator(bus: Bus, stop: threading.Event) -> EvaluatorWorker:
            return EvaluatorWorker(bus, self._topics, self._settings, EvaluatorMetrics(), stop, patient=False)

        url = self._settings.bus
        try:
            with InThread(url, learner) as learning, InThread(url, evaluator) as evaluating:
                self._follow(learning, evaluating)
                for worker in (learning, evaluating):
                    worker.stop()  # they shut down while the report is written
                return self._finish()
        except BaseException:
            with suppress(UsageError):  # the training times of the last windows, for a resumed run
                self._save()
            raise

    def _follow(self, *workers: InThread) -> None:
        """Feeds tasks and reads what the workers publish, until every task is learned and evaluated."""
        tasks, fed = self._feeder.tasks, self._feeder.fed()
        partitions = [TopicPartition(self._topics[role], 0) for role in ("windows", "evaluations")]
        with self._bus.reader({tp: self._bus.begin_offsets(tp.topic)[0] for tp in partitions}) as reader:
            while not self._progress.done:
                for worker in workers:
                    worker.check()
                feeds = fed < len(tasks) and fed < self._progress.trained + _TASKS_AHEAD
                if feeds:
                    self._observer.progress(f"feeding task {fed + 1}")
                    self._feeder.feed(tasks[fed])
                    fed += 1
                self._report(fed)
                for record in reader.poll(0.0 if feeds else _POLL_SECONDS):
                    role = "windows" if record.topic == self._topics["windows"] else "evaluations"
                    event = decode(role, record.key, record.value, record.headers)
                    assert isinstance(event, LedgerRecord | Evaluation)
                    for result in self._progress.add(event):
                        self._task_done(result)

    def _report(self, fed: int) -> None:
        trained, evaluated = self._progress.trained, len(self._progress.results)
        if trained < fed:
            self._observer.progress(f"learning task {trained + 1}")
        elif evaluated < trained:
            self._observer.progress(f"evaluating task {evaluated + 1}")

    def _task_done(self, result: TaskResult) -> None:
        with suppress(Incomplete):  # replaced by now: the report leaves it out
            self._similarities.add(self._loader.load(result.record))
        self._save()
        self._observer.task_done(result, self._spent.training.get(result.record.number))

    def _save(self) -> None:
        self._spent.total = time.monotonic() - self._started
        self._folder.write_request(self._identity, self._spent)

    def _finish(self) -> RunDocument:
        """Computes the scores and pictures and writes the folder's files."""
        self._observer.progress("writing the report")
        recorded = Ledger.open(self._bus, self._topics)
        assert recorded is not None
        last = self._progress.results[-1].record
        final = load_generation(self._bus, self._topics, last)
        tests = {class_id: self._data.test(class_id) for class_id in final.class_ids}
        readings = self._progress.readings(final, tests)
        curve = seen_unseen_curve(classify(final, in_batches(final.class_ids, tests)), final.seen)
        points, point = curve_points(curve)
        learner = Restorer(self._bus, self._topics, recorded, choose_device(self._settings.device)).at(last.number)
        drawn = replay_map(self._feeder.tasks, self._data, final, learner.generate)
        self._save()
        return write_results(
            self._request,
            self._folder,
            Results(
                readings=readings,
                windows=window_lines(self._progress.results, readings, self._spent),
                environment=last.environment,
                bus=self._bus.url,
                curve=points,
                curve_point=point,
                similarities=self._similarities.panels(),
                map=drawn,
            ),
            self._spent,
        )
