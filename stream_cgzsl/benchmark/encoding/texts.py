"""What people have before there are vectors: labelled texts, in a CSV file or in a folder with one folder per class."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stream_cgzsl.benchmark.datasets.problems import check_class_ids, wrong
from stream_cgzsl.errors import UsageError

Item = str | Path
"""What an encoder reads: a text, or the path of a file that is none."""

_LABEL = ("label", "labels", "class", "classes", "class_id")
_MAX_TEXT = 1_000_000
"""Characters of one text that are read: far more than any encoder looks at."""


@dataclass(frozen=True)
class Texts:
    """Labelled items in the order of their source; `split` is empty, or has `train` or `test` for each."""

    path: Path
    items: list[Item]
    labels: list[str]
    split: list[str]


def read_texts(path: Path) -> Texts:
    """Reads a CSV file or a folder. Raises `UsageError` that says what is wrong and where."""
    if path.is_dir():
        found = _read_folder(path)
    elif path.is_file():
        found = _read_csv(path)
    else:
        raise UsageError(f"{path}: there is no such file or folder")
    if not found.items:
        raise wrong(path, "texts", "none", "rows of text and label, or one folder of files per class")
    check_class_ids(path, "label", list(dict.fromkeys(found.labels)))
    return found


def read_descriptions(path: Path) -> dict[str, str]:
    """The description of each class in a CSV file with the columns label and description."""
    found: dict[str, str] = {}
    for line, row in _rows(path, ("description",), ()):
        if row["label"] in found:
            raise wrong(path, f"line {line}", f"the class {row['label']!r} again", "every class once")
        found[row["label"]] = row["description"]
    check_class_ids(path, "label", list(found))
    return found


def _read_csv(path: Path) -> Texts:
    texts = Texts(path, [], [], [])
    for line, row in _rows(path, ("text",), ("split",)):
        if row.get("split", "train") not in ("train", "test"):
            raise wrong(path, f"line {line}, column 'split'", repr(row["split"][:60]), "train or test")
        texts.items.append(row["text"])
        texts.labels.append(row["label"])
        texts.split.extend([row["split"]] if "split" in row else [])
    return texts


def _rows(path: Path, needed: tuple[str, ...], wanted: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row's line and its `label`, `needed` and `wanted` columns, stripped; other columns are ignored."""
    before = csv.field_size_limit(_MAX_TEXT)  # of the process
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file)
            header = [name.strip().lower() for name in next(lines, [])]
            columns = {name: header.index(name) for name in (*needed, *wanted) if name in header}
            label = [name for name in _LABEL if name in header]
            if len(label) != 1 or not set(needed) <= set(columns):
                found = ", ".join(header)[:200] or "nothing"
                raise wrong(path, "line 1", found, f"a header with the columns {needed[0]} and label")
            columns["label"] = header.index(label[0])
            for row in lines:
                if not any(row):
                    continue
                where = f"line {lines.line_num}"
                if len(row) != len(header):
                    expected = f'{len(header)}, as in the header (a text with commas needs quotes: "a, b")'
                    raise wrong(path, where, f"{len(row)} fields", expected)
                found_row = {name: row[number].strip() for name, number in columns.items()}
                for name in ("label", *needed):
                    if not found_row[name]:
                        raise wrong(path, f"{where}, column {name!r}", "nothing", "a text")
                yield lines.line_num, found_row
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path}: not a readable CSV file in UTF-8: {error}") from error
    finally:
        csv.field_size_limit(before)


def _read_folder(path: Path) -> Texts:
    """Files ending in .txt are texts; all others are left to the encoder. Hidden files are skipped."""
    texts = Texts(path, [], [], [])
    for folder in sorted(path.iterdir()):
        if not folder.is_dir() or folder.name.startswith("."):
            continue
        for file in sorted(folder.iterdir()):
            if file.is_file() and not file.name.startswith("."):
                texts.items.append(_read_file(file) if file.suffix.lower() == ".txt" else file)
                texts.labels.append(folder.name)
    return texts


def _read_file(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MAX_TEXT).strip()
    except (UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path}: not a readable text file in UTF-8: {error}") from error
    if not text:
        raise wrong(path, "text", "nothing", "a text")
    return text
