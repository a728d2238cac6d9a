"""The report as text: whole, the same every time, and made of every document there can be."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import documents
import pytest

from stream_cgzsl.report.document import RunDocument, StudyDocument
from stream_cgzsl.report.page import render

EVERY = [
    *("run", "one_window", "bare", "no_windows", "seen_only", "crowded", "hostile"),
    *("ablation", "sweep", "empty_study", "unmeasured_study", "trickle", "few_shot", "trickle_study"),
]
_VOID = {"meta", "link", "br", "input"}


class Outline(HTMLParser):
    """What a page is made of, as a parser that knows no mercy sees it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.outside: list[str] = []
        self.tags: Counter[str] = Counter()
        self.titles: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            assert name != "style", tag
            if name == "id":
                self.ids.append(value or "")
            elif name in ("href", "src") and (value or "").startswith("#"):
                self.targets.append((value or "")[1:])
            elif name in ("href", "src") and not (value or "").startswith("data:image/svg+xml,"):
                self.outside.append(value or "")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-2:] == ["head", "title"]:
            self.titles.append(data)


def sections(text: str) -> list[str]:
    return [name for name in Outline(text).ids if f'<section id="{name}"' in text]


@pytest.mark.parametrize("name", EVERY)
def test_every_document_gives_a_whole_page(name: str) -> None:
    document: RunDocument | StudyDocument = getattr(documents, name)()
    text = render(document)
    outline = Outline(text)
    assert outline.open == []
    assert "".join(outline.titles) == document.title
    assert [one for one, count in Counter(outline.ids).items() if count > 1] == []
    assert set(outline.targets) <= set(outline.ids)
    assert outline.outside == []
    assert (outline.tags["h1"], outline.tags["main"], outline.tags["script"]) == (1, 1, 1)
    assert not {"nan", "NaN", "inf", "None"} & set(
        re.split(r"[^A-Za-z]+", text.split("</style>")[1].split("<script>")[0])
    )


@pytest.mark.parametrize("name", ["run", "ablation"])
def test_the_same_document_gives_the_same_bytes(name: str) -> None:
    assert render(getattr(documents, name)()) == render(getattr(documents, name)())


def test_a_run_that_was_written_and_read_back_looks_the_same() -> None:
    run = documents.run()
    assert render(RunDocument.model_validate_json(run.model_dump_json())) == render(run)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run", ["accuracy", "paper", "balance", "similarity", "training", "windows", "again"]),
        ("bare", ["training", "windows", "again"]),
        ("no_windows", ["again"]),
        ("seen_only", ["accuracy", "paper", "similarity", "training", "windows", "again"]),
        ("trickle", ["examples", "accuracy", "balance", "similarity", "training", "windows", "again"]),
        ("ablation", ["result", "rows", "again"]),
        ("few_shot", ["examples", "again"]),
        ("trickle_study", ["examples", "result", "rows", "again"]),
        ("empty_study", ["again"]),
    ],
)
def test_what_a_document_lacks_has_no_section(name: str, expected: list[str]) -> None:
    assert sections(render(getattr(documents, name)())) == expected


def test_every_chart_of_a_run_has_its_figures_in_a_table() -> None:
    outline = Outline(render(documents.run()))
    assert outline.tags["figure"] == outline.tags["details"] == 14
    assert outline.tags["table"] == 15  # and one for the windows
    assert outline.tags["desc"] == 16  # the losses are three drawings in one figure


def test_a_few_shot_study_has_a_line_per_learner_and_group_and_all_figures_in_tables() -> None:
    text = render(documents.few_shot())
    outline = Outline(text)
    assert outline.tags["figure"] == outline.tags["table"] == 3
    assert text.count('class="line overlaid') == 3 * 8
    assert [f">{k}</text>" in text for k in (0, 1, 2, 3, 5, 10, 20)] == [True] * 7
    assert '<th scope="row">5</th><td>72.5</td><td>64.5</td>' in text


def test_a_group_without_classes_leaves_a_gap() -> None:
    text = render(documents.trickle())
    rows = re.findall(r'<tr data-at="[\d.]+"><th scope="row">(\d+)</th>((?:<td>[^<]*</td>){6})</tr>', text)
    assert rows[0] == ("1", "<td>50.5</td><td>40.0</td>" + "<td>–</td>" * 4)
    assert rows[-1][1].endswith("<td>64.0</td>")


def test_every_window_has_its_row_and_its_whole_digest() -> None:
    run = documents.run()
    text = render(run)
    assert [f'title="{window.digest}"' in text for window in run.windows] == [True] * 20


def test_no_text_of_a_document_becomes_markup() -> None:
    text = render(documents.hostile())
    assert documents.HOSTILE not in text
    assert "&lt;/script&gt;&lt;script&gt;document.title=" in text
    assert Outline(text).tags["img"] == 0


@pytest.mark.parametrize("kind", ["run", "ablation"])
def test_nothing_may_be_loaded_or_run_but_what_is_inside(kind: str) -> None:
    text = render(getattr(documents, kind)())
    policy = text.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


@pytest.mark.parametrize(("setting", "told"), [("static", "is not zero-shot"), ("online", "in part"), ("dynamic", "")])
def test_accuracies_on_classes_learned_since_are_not_called_zero_shot(setting: str, told: str) -> None:
    page = render(documents.run().model_copy(update={"setting": setting}))
    assert ("zero-shot" in page) == bool(told) and told in page


def test_forgetting_by_task_stands_beside_ours_and_the_papers() -> None:
    page = render(documents.run().model_copy(update={"task_forgetting": -1.25, "paper_forgetting": 11.0}))
    assert "By task, with gains counted: −1.2" in page or "By task, with gains counted: -1.2" in page
    assert "the paper reports 11" in page
