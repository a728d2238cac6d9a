"""The folder of a run: what was requested, how long it took so far, and its results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from stream_cgzsl.errors import UsageError
from stream_cgzsl.report.document import RunDocument, StudyDocument
from stream_cgzsl.runtime.atomic_write import write_atomically
from stream_cgzsl.runtime.file_lock import FileLock

Document = TypeVar("Document", RunDocument, StudyDocument)


@dataclass
class Spent:
    """Seconds a run took so far, summed over restarts; `training` is by window number."""

    total: float = 0.0
    training: dict[int, float] = field(default_factory=dict)


class RunFolder:
    """`run.json` identifies the run and is written first; `metrics.json` is written last, when the run is done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.request = path / "run.json"
        self.database = path / "run.db"
        self.metrics = path / "metrics.json"
        self.report_json = path / "report.json"
        self.report_html = path / "report.html"
        self.study_json = path / "study.json"

    @property
    def own_bus(self) -> str:
        """The URL of the SQLite file in this folder: the run's bus unless it was given another."""
        return f"sqlite:///{quote(str(self.database.absolute()))}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Creates the folder where it is missing, and locks it against other processes. Raises `UsageError`."""
        lock = FileLock(self.request, "run")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            acquired = lock.acquire()
        except OSError as error:
            raise UsageError(f"cannot write to {self.path}: {error.strerror or error}; choose another --out") from error
        if not acquired:
            raise UsageError(f"{self.path}: another process is using this folder; wait for it, or choose another --out")
        try:
            yield
        finally:
            lock.release()

    def is_new(self) -> bool:
        return not self.request.exists()

    def require(self, identity: Mapping[str, Any]) -> None:
        """Raises `UsageError` where the folder belongs to another run."""
        if self.is_new():
            return
        stored = self._read()["identity"]
        requested = json.loads(json.dumps(dict(identity)))
        for name in (*requested, *stored):
            if stored.get(name) != requested.get(name):
                raise UsageError(
                    f"{self.path} has another run: its {name} is {_shown(stored.get(name))}, and the request says "
                    f"{_shown(requested.get(name))}; choose another --out, or request the same run"
                )

    def write_request(self, identity: Mapping[str, Any], spent: Spent) -> None:
        """Records which run this is, and how long it took so far."""
        training = spent.training.copy()  # the learner's thread may add to it at any time
        document = {
            "identity": dict(identity),
            "seconds": {"total": round(spent.total, 3), "training": {str(n): round(s, 4) for n, s in training.items()}},
        }
        write_atomically(self.request, json.dumps(document, indent=1) + "\n")

    def spent(self) -> Spent:
        if self.is_new():
            return Spent()
        seconds = self._read()["seconds"]
        return Spent(seconds["total"], {int(number): value for number, value in seconds["training"].items()})

    def finished(self) -> bool:
        return self.metrics.exists() and self.report_json.exists()

    def document(self) -> RunDocument:
        """The report of a finished run. Raises `UsageError`."""
        return _document(self.report_json, RunDocument)

    def run_or_study(self) -> RunDocument | StudyDocument:
        """The report of a finished run or study. Raises `UsageError`."""
        if self.study_json.exists():
            return _document(self.study_json, StudyDocument)
        return self.document()

    def _read(self) -> dict[str, Any]:
        try:
            document = json.loads(self.request.read_bytes())
            return {"identity": dict(document["identity"]), "seconds": dict(document["seconds"])}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{self.request}: not the request of a run ({error}); choose another --out") from error


def _document(path: Path, kind: type[Document]) -> Document:
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError(f"there is no {path}: a run or study writes it when it is done") from error
    except (OSError, ValidationError) as error:
        raise UsageError(f"{path}: not the report of a run or study: {' '.join(str(error).split())[:200]}") from error


def _shown(value: Any) -> str:
    return "not set" if value is None else repr(value)
