"""The folder of a run: what run it is, how long it took so far, and in the end what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from stream_cgzsl.bus.file_lock import FileLock
from stream_cgzsl.errors import UsageError
from stream_cgzsl.report.document import RunDocument, StudyDocument
from stream_cgzsl.whole_file import write_whole

Document = TypeVar("Document", RunDocument, StudyDocument)


@dataclass
class Spent:
    """Seconds a run took so far, over all the times it was started; `training` is by window."""

    total: float = 0.0
    training: dict[int, float] = field(default_factory=dict)


class RunFolder:
    """`run.json` says what run this is, from its first moment on; `metrics.json` is written last, when it is done."""

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
        """The URL of the file that is the run's bus unless it was given another."""
        return f"sqlite:///{quote(str(self.database.absolute()))}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Makes the folder where it is missing, and keeps others from working in it meanwhile. Raises `UsageError`."""
        lock = FileLock(self.request, "run")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            alone = lock.acquire()
        except OSError as error:
            raise UsageError(f"cannot write to {self.path}: {error.strerror or error}; choose another --out") from error
        if not alone:
            raise UsageError(
                f"{self.path}: another process is at work in this folder; wait for it, or choose another --out"
            )
        try:
            yield
        finally:
            lock.release()

    def is_new(self) -> bool:
        return not self.request.exists()

    def require(self, identity: Mapping[str, Any]) -> None:
        """Raises `UsageError` where the folder is of another run."""
        if self.is_new():
            return
        there = self._read()["identity"]
        here = json.loads(json.dumps(dict(identity)))
        for name in (*here, *there):
            if there.get(name) != here.get(name):
                raise UsageError(
                    f"{self.path} has another run: its {name} is {_shown(there.get(name))}, and {_shown(here.get(name))} "
                    "was asked for; choose another --out, or ask for the same"
                )

    def write_request(self, identity: Mapping[str, Any], spent: Spent) -> None:
        """Says what run this is, and how long it took so far."""
        training = spent.training.copy()  # a learner's thread may add to it meanwhile
        document = {
            "identity": dict(identity),
            "seconds": {
                "total": round(spent.total, 3),
                "training": {str(n): round(s, 4) for n, s in training.items()},
            },
        }
        write_whole(self.request, json.dumps(document, indent=1) + "\n")

    def spent(self) -> Spent:
        if self.is_new():
            return Spent()
        seconds = self._read()["seconds"]
        return Spent(seconds["total"], {int(number): value for number, value in seconds["training"].items()})

    def finished(self) -> bool:
        return self.metrics.exists() and self.report_json.exists()

    def document(self) -> RunDocument:
        """What came of a run that is finished. Raises `UsageError`."""
        return _document(self.report_json, RunDocument)

    def told(self) -> RunDocument | StudyDocument:
        """What came of a run or of a study. Raises `UsageError`."""
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
        raise UsageError(f"there is no {path}: a run or a study writes it when it is done") from error
    except (OSError, ValidationError) as error:
        raise UsageError(
            f"{path}: not the document of a run or a study: {' '.join(str(error).split())[:200]}"
        ) from error


def _shown(value: Any) -> str:
    return "not given" if value is None else repr(value)
