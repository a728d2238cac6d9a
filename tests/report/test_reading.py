"""What a report says in words."""

from __future__ import annotations

import documents
import pytest

from stream_cgzsl.report import numbers
from stream_cgzsl.report.document import StudyDocument
from stream_cgzsl.report.sections import opening, study
from stream_cgzsl.report.sections.paper import comparable


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "run",
            "After 20 windows it recognises 74.3 % of the examples of 139 seen classes and 70.4 % of the examples of "
            "41 unseen classes.",
        ),
        (
            "one_window",
            "After 1 window it recognises 82.0 % of the examples of 6 seen classes and 62.4 % of the examples of "
            "3 unseen classes.",
        ),
        ("seen_only", "After 4 windows it recognises 81.1 % of the examples of 27 seen classes."),
        ("bare", "After 1 window it knows 3 seen classes and 0 unseen classes; no test examples say how well."),
        ("no_windows", "No window was trained, so nothing can be recognised yet."),
    ],
)
def test_the_result_of_a_run_in_one_sentence(name: str, sentence: str) -> None:
    assert opening.summary(getattr(documents, name)()).replace("\u202f", " ") == sentence


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (
            documents.ablation(),
            "“all losses” has the best harmonic mean, 66.1 ± 0.5, 1.3 points ahead of “without L_GAN”.",
        ),
        (documents.unmeasured_study(), "No row has a harmonic mean."),
        (documents.trickle_study(), "“evidence” has the best overall accuracy, 60.0, 1.0 points ahead of “episodic”."),
        (documents.unmeasured_study().model_copy(update={"setting": "trickle"}), "No row has an overall accuracy."),
        (
            documents.few_shot(),
            "With 1 example per class, “evidence” reaches 70.5\u202f%, 8.0 points ahead of “episodic”.",
        ),
        (
            documents.few_shot().model_copy(update={"curves": documents.few_shot().curves[:1]}),
            "With 1 example per class, “evidence” reaches 70.5\u202f%.",
        ),
        (
            documents.ablation().model_copy(update={"rows": documents.ablation().rows[:1]}),
            "“all losses” has the best harmonic mean, 66.1 ± 0.5.",
        ),
    ],
)
def test_the_result_of_a_study_in_one_sentence(document: StudyDocument, sentence: str) -> None:
    assert study.summary(document) == sentence


def test_figures_of_other_features_are_not_called_comparable() -> None:
    assert comparable("ResNet-101", "ResNet-101") == "Both use ResNet-101 features, so the figures are comparable."
    assert comparable("EfficientNet-Lite2", "ResNet-101") == (
        "This run uses EfficientNet-Lite2 features, the paper ResNet-101 features. "
        "Better features alone give better figures, so a difference says little about the method."
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (numbers.decimal(-0.01), "0.0"),
        (numbers.decimal(-1.25, 2), "−1.25"),
        (numbers.decimal(None), "–"),
        (numbers.plus_minus(70.04, 0.26), "70.0 ± 0.3"),
        (numbers.plus_minus(70.04, None), "70.0"),
        (numbers.count(1234567), "1\u202f234\u202f567"),
        (numbers.duration(0.42), "0.42\u202fs"),
        (numbers.duration(9.96), "10\u202fs"),
        (numbers.duration(59.7), "1\u202fmin 0\u202fs"),
        (numbers.duration(3780), "1\u202fh 3\u202fmin"),
        (numbers.significant(0.000123456), "0.000123"),
        (numbers.significant(-12345.6), "−12\u202f346"),
        (numbers.shorten("001.Black_footed_Albatross", 14), "001.Blac…tross"),
        (numbers.shorten("Ovenbird", 14), "Ovenbird"),
    ],
)
def test_figures_are_written_for_people(written: str, expected: str) -> None:
    assert written == expected
