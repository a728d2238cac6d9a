"""A run: a data set is fed to a stream task by task, learned and evaluated, all in one process and through a bus.

Learner and evaluator are the workers that `learn` and `evaluate` run, each in a thread. What is known of the run stands
on the bus: whoever starts it again reads it there and goes on. This room lies above the workers, as the commands do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from stream_cgzsl.benchmark.feeding import Feeder
from stream_cgzsl.benchmark.run_document import Results, window_lines, write_results
from stream_cgzsl.benchmark.run_folder import RunFolder
from stream_cgzsl.benchmark.run_pictures import curve_points, followed_classes, mapped
from stream_cgzsl.benchmark.run_record import Learned, RunRecord
from stream_cgzsl.benchmark.run_request import RunRequest
from stream_cgzsl.benchmark.settings import as_used
from stream_cgzsl.benchmark.similarities import Similarities
from stream_cgzsl.benchmark.training_times import TrainingTimes
from stream_cgzsl.bus import Bus, TopicPartition, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.environment import choose_device
from stream_cgzsl.errors import UsageError
from stream_cgzsl.evaluation.answers import ask, in_batches
from stream_cgzsl.evaluation.curve import seen_unseen_curve
from stream_cgzsl.learners import BOUNDS
from stream_cgzsl.metrics import EvaluatorMetrics
from stream_cgzsl.report.document import RunDocument
from stream_cgzsl.schemas import Evaluation, LedgerRecord, decode
from stream_cgzsl.windows import ledger
from stream_cgzsl.windows.restore import Restorer
from stream_cgzsl.workers.evaluator import EvaluatorWorker
from stream_cgzsl.workers.in_thread import InThread
from stream_cgzsl.workers.learner import LearnerWorker

_AHEAD = 2
"""Most tasks on the bus that are not learned yet: while one is trained, the next is fed."""

_POLL_SECONDS = 0.1


class Audience(Protocol):
    """Whoever watches a run."""

    def begins(self, request: RunRequest, learned: int) -> None:
        """`learned` of its tasks are on the ledger already."""

    def doing(self, text: str) -> None: ...

    def learned(self, window: Learned, seconds: float | None) -> None:
        """A task is learned and evaluated; `seconds` is how long it was trained for, where that is known."""


def run(request: RunRequest, folder: RunFolder, audience: Audience) -> RunDocument:
    """Runs what is missing and writes the folder's files. A run that is finished is not run again.

    Raises `UsageError` where the folder or the stream is of another run, and whatever ends a worker.
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
            running = _Running(request, identity, folder, bus, audience)
            running.claim()
            return running.run()


class _Running:
    def __init__(
        self, request: RunRequest, identity: Mapping[str, Any], folder: RunFolder, bus: Bus, audience: Audience
    ) -> None:
        self._request = request
        self._identity = identity
        self._data = as_used(request.data, request.plan, request.order)
        self._folder = folder
        self._bus = bus
        self._audience = audience
        self._settings = request.learning(request.bus or folder.own_bus)
        self._topics = Topics(self._settings.prefix, self._settings.topics)
        self._feeder = Feeder(bus, self._topics, request.data, request.plan, request.order)
        self._record = RunRecord(self._feeder.tasks)
        self._similarities = Similarities(
            {class_id: self._data.test(class_id) for class_id in followed_classes(self._feeder.tasks, self._data)}
        )
        self._spent = folder.spent()
        self._before = self._spent.total - time.monotonic()

    def claim(self) -> None:
        """From here on the folder is this run's. Raises `UsageError` where its stream is somebody else's."""
        learned = len(ledger.read_all(self._bus, self._topics))
        if self._folder.is_new() and learned:
            raise UsageError(
                f"{self._bus.url}: the stream {self._topics.prefix!r} has a ledger of {learned} records that this folder "
                "knows nothing of; choose another --prefix"
            )
        self._save()
        self._audience.begins(self._request, max(learned - 1, 0))

    def run(self) -> RunDocument:
        """Until every task is learned and evaluated, and the folder's files are written."""
        times = TrainingTimes(self._spent.training)

        def learner(bus: Bus, stop: threading.Event) -> LearnerWorker:
            return LearnerWorker(bus, self._topics, self._settings, times, stop, patient=False)

        def evaluator(bus: Bus, stop: threading.Event) -> EvaluatorWorker:
            return EvaluatorWorker(bus, self._topics, self._settings, EvaluatorMetrics(), stop, patient=False)

        url = self._settings.bus
        try:
            with InThread(url, learner) as learning, InThread(url, evaluator) as evaluating:
                self._follow(learning, evaluating)
                for worker in (learning, evaluating):
                    worker.stop()  # they end while the report is made
                return self._finish()
        except BaseException:
            with suppress(UsageError):  # how long the last window took is told to whoever goes on, if it can be
                self._save()
            raise

    def _follow(self, *workers: InThread) -> None:
        tasks, fed = self._feeder.tasks, self._feeder.fed()
        places = [TopicPartition(self._topics[role], 0) for role in ("windows", "evaluations")]
        with self._bus.reader({place: self._bus.begin_offsets(place.topic)[0] for place in places}) as reader:
            while not self._record.done:
                for worker in workers:
                    worker.check()
                hungry = fed < len(tasks) and fed < self._record.trained + _AHEAD
                if hungry:
                    self._audience.doing(f"feeding task {fed + 1}")
                    self._feeder.feed(tasks[fed])
                    fed += 1
                self._tell(fed)
                for record in reader.poll(0.0 if hungry else _POLL_SECONDS):
                    role = "windows" if record.topic == self._topics["windows"] else "evaluations"
                    event = decode(role, record.key, record.value, record.headers)
                    assert isinstance(event, LedgerRecord | Evaluation)
                    for window in self._record.take(event):
                        self._learned(window)

    def _tell(self, fed: int) -> None:
        trained, evaluated = self._record.trained, len(self._record.learned)
        if trained < fed:
            self._audience.doing(f"learning task {trained + 1}")
        elif evaluated < trained:
            self._audience.doing(f"evaluating task {evaluated + 1}")

    def _learned(self, window: Learned) -> None:
        with suppress(ledger.Incomplete):  # replaced by now: its neighbours are not shown
            self._similarities.look(ledger.load_generation(self._bus, self._topics, window.record))
        self._save()
        self._audience.learned(window, self._spent.training.get(window.record.number))

    def _save(self) -> None:
        self._spent.total = self._before + time.monotonic()
        self._folder.write_request(self._identity, self._spent)

    def _finish(self) -> RunDocument:
        """Reads what is left to read and writes the folder's files."""
        self._audience.doing("writing the report")
        records = ledger.read_all(self._bus, self._topics)
        last = self._record.learned[-1].record
        final = ledger.load_generation(self._bus, self._topics, last)
        tests = {class_id: self._data.test(class_id) for class_id in final.class_ids}
        readings = self._record.readings(final, tests)
        curve = seen_unseen_curve(ask(final, in_batches(final.class_ids, tests)), final.seen)
        points, point = curve_points(curve)
        lineage = Restorer(self._bus, self._topics, records, choose_device(self._settings.device)).at(last.number)
        drawn = mapped(self._feeder.tasks, self._data, final, lineage.generate)
        self._save()
        return write_results(
            self._request,
            self._folder,
            Results(
                readings=readings,
                windows=window_lines(self._record.learned, readings, self._spent),
                environment=last.environment,
                bus=self._bus.url,
                curve=points,
                curve_point=point,
                similarities=self._similarities.panels(),
                map=drawn,
            ),
            self._spent,
        )
