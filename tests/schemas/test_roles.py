"""The topic table, row by row: changing it changes a contract."""

from __future__ import annotations

from stream_cgzsl.schemas import ROLES

KEPT = {"keep": "for ever", "expire": "as set", "compact": "newest per key"}


def test_the_topic_table() -> None:
    rows = [
        (
            role.name,
            " ".join(event.type_name() for event in role.events),
            role.tombstone.type_name() if role.tombstone else "-",
            KEPT[role.cleanup],
            "1" if role.single else "any",
            "others" if role.input else "us",
        )
        for role in ROLES.values()
    ]
    assert rows == [
        ("attributes", "cgzsl.attribute.v1", "cgzsl.retirement.v1", "for ever", "any", "others"),
        ("features", "cgzsl.feature.v1", "-", "as set", "any", "others"),
        ("control", "cgzsl.boundary.v1 cgzsl.rollback.v1", "-", "for ever", "1", "others"),
        ("windows", "cgzsl.window.v1", "-", "for ever", "1", "us"),
        ("projections", "cgzsl.projection.v1 cgzsl.encoder.v1", "cgzsl.withdrawal.v1", "newest per key", "1", "us"),
        ("state", "cgzsl.state.v1", "-", "newest per key", "1", "us"),
        ("samples", "cgzsl.sample.v1", "-", "as set", "any", "others"),
        ("predictions", "cgzsl.prediction.v1", "-", "as set", "any", "us"),
        ("holdout", "cgzsl.holdout.v1", "-", "as set", "any", "others"),
        ("evaluations", "cgzsl.evaluation.v1", "-", "for ever", "1", "us"),
        ("dead-letters", "cgzsl.dead-letter.v1", "-", "for ever", "1", "us"),
    ]
