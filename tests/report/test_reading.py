"""What a report says in words."""

from __future__ import annotations

import documents
import pytest

from stream_cgzsl.report import numbers
from stream_cgzsl.report.document import StudyDocument
from stream_cgzsl.report.sections import opening, study
from stream_cgzsl.report.sections.beside_paper import comparable


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "run",
            "After 20 windows it recognises 74.3 % of what it sees of the 139 classes it has learned, and 70.4 % of the "
            "41 classes it knows by description only.",
        ),
        (
            "one_window",
            "After 1 window it recognises 82.0 % of what it sees of the 6 classes it has learned, and 62.4 % of the 3 classes "
            "it knows by description only.",
        ),
        (
            "seen_only",
            "After 4 windows it recognises 81.1 % of what it sees of the 27 classes it has learned; no class is left that it "
            "knows by description only.",
        ),
        ("bare", "After 1 window it knows 3 classes by example and 0 by description; nothing says how well."),
        ("no_windows", "No window was trained, so there is nothing to recognise yet."),
    ],
)
def test_the_result_of_a_run_in_one_sentence(name: str, sentence: str) -> None:
    assert opening.reading(getattr(documents, name)()).replace("\u202f", " ") == sentence


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (
            documents.ablation(),
            "“all losses” has the best harmonic mean, 66.1 ± 0.5, 1.3 points before “without L_GAN”.",
        ),
        (documents.unmeasured_study(), "No row has a harmonic mean."),
        (
            documents.ablation().model_copy(update={"rows": documents.ablation().rows[:1]}),
            "“all losses” has the best harmonic mean, 66.1 ± 0.5.",
        ),
    ],
)
def test_the_result_of_a_study_in_one_sentence(document: StudyDocument, sentence: str) -> None:
    assert study.reading(document) == sentence


def test_figures_of_other_features_are_not_called_comparable() -> None:
    assert comparable("ResNet-101", "ResNet-101") == "Both use ResNet-101 features, so the figures compare."
    assert comparable("EfficientNet-Lite2", "ResNet-101") == (
        "Ours are EfficientNet-Lite2 features, the paper’s are ResNet-101 features. "
        "Better features alone give better figures, so a difference says little about the method."
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (numbers.plain(-0.01), "0.0"),
        (numbers.plain(-1.25, 2), "−1.25"),
        (numbers.plain(None), "–"),
        (numbers.spread(70.04, 0.26), "70.0 ± 0.3"),
        (numbers.spread(70.04, None), "70.0"),
        (numbers.count(1234567), "1\u202f234\u202f567"),
        (numbers.seconds(0.42), "0.42\u202fs"),
        (numbers.seconds(9.96), "10\u202fs"),
        (numbers.seconds(59.7), "1\u202fmin 0\u202fs"),
        (numbers.seconds(3780), "1\u202fh 3\u202fmin"),
        (numbers.significant(0.000123456), "0.000123"),
        (numbers.significant(-12345.6), "−12\u202f346"),
        (numbers.short("001.Black_footed_Albatross", 14), "001.Blac…tross"),
        (numbers.short("Ovenbird", 14), "Ovenbird"),
    ],
)
def test_figures_are_written_for_people(written: str, expected: str) -> None:
    assert written == expected
