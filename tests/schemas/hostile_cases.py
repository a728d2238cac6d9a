"""Records that must be refused, each with its reason."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from stream_cgzsl.schemas import MAX_BYTES, Headers
from stream_cgzsl.schemas.message import UNREADABLE

F4: Headers = (("ce_dtype", b"float32"),)
CHUNK: Headers = (("ce_type", b"cgzsl.state.v1"), ("content-type", b"application/octet-stream"), ("ce_count", b"2"))
BOUNDARY: Headers = (("ce_type", b"cgzsl.boundary.v1"),)
SHA = "0" * 64
LEDGER = {"kind": "train", "reason": "r", "configuration_digest": SHA, "code": "1"}


class Case(NamedTuple):
    reason: str
    label: str
    role: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def vector(*numbers: float) -> bytes:
    return np.array(numbers, "<f4").tobytes()


def projection(bias: bytes, seen: bytes) -> Headers:
    return (*F4, ("ce_bias", bias), ("ce_seen", seen), ("ce_generation", b"1"))


def json_of(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


# 1e999 is good JSON that no float holds; json.dumps cannot write it
INFINITE_FACT = json_of(**LEDGER, environment={"x": "?"}).replace(b'"?"', b"1e999")

CASES = [
    # what the bus could not read
    Case("unreadable", "a batch that is too large", "features", None, None, ((UNREADABLE, b"its batch is damaged"),)),
    # the value as a whole
    Case("too-large", "10 MB of numbers", "features", b"c", bytes(10 * 1024 * 1024), F4),
    Case("too-large", "10 MB of JSON", "control", None, b" " * 10 * 1024 * 1024 + b"{}"),
    Case("too-large", "one byte too many", "samples", b"r", b"[" * (MAX_BYTES + 1)),
    Case("empty-value", "no value", "features", b"c", None),
    Case("empty-value", "no bytes", "samples", b"r", b"", F4),
    Case("empty-value", "no boundary", "control", None, b""),
    # binary vectors
    Case("wrong-length", "truncated", "features", b"c", vector(1, 2)[:-1], F4),
    Case("wrong-length", "one byte", "features", b"c", b"\x00", (("ce_dtype", b"float16"),)),
    Case("wrong-length", "fewer numbers than ce_dim", "features", b"c", vector(1), (*F4, ("ce_dim", b"2"))),
    Case(
        "wrong-length",
        "float32 called float16",
        "features",
        b"c",
        vector(1),
        (("ce_dtype", b"float16"), ("ce_dim", b"1")),
    ),
    Case("wrong-length", "ce_dim of another spelling", "features", b"c", vector(1), (*F4, ("ce_dim", b"01"))),
    Case("wrong-length", "ce_dim not UTF-8", "features", b"c", vector(1), (*F4, ("ce_dim", b"\xff"))),
    Case("wrong-dtype", "float64", "features", b"c", bytes(8), (("ce_dtype", b"float64"),)),
    Case("wrong-dtype", "dtype not UTF-8", "features", b"c", bytes(8), (("ce_dtype", b"\xff\xfe"),)),
    Case("wrong-dtype", "dtype of 10 MB", "features", b"c", bytes(8), (("ce_dtype", b"\n" * 10_000_000),)),
    Case(
        "wrong-dtype",
        "bytes without dtype",
        "features",
        b"c",
        bytes(8),
        (("content-type", b"application/octet-stream"),),
    ),
    Case("wrong-dtype", "a vector for a boundary", "control", None, bytes(8), F4),
    Case("not-finite", "NaN", "features", b"c", vector(1, float("nan")), F4),
    Case("not-finite", "infinity", "samples", b"r", vector(float("inf"), 1), F4),
    Case("not-finite", "minus infinity in float16", "samples", b"r", b"\x00\xfc", (("ce_dtype", b"float16"),)),
    # headers
    Case("not-utf8", "ce_id", "features", b"c", vector(1), (*F4, ("ce_id", b"\xff"))),
    Case("not-utf8", "ce_time beside JSON", "features", b"c", b'{"vector":[1]}', (("ce_time", b"\xc3\x28"),)),
    Case("not-utf8", "a surrogate in ce_id", "features", b"c", vector(1), (*F4, ("ce_id", b"\xed\xa0\x80"))),
    Case("not-utf8", "a whole number", "state", b"0", b"x", (*CHUNK, ("ce_window", b"\xff"))),
    Case("repeated-header", "ce_dtype", "features", b"c", vector(1), (*F4, *F4)),
    Case("repeated-header", "ce_id", "features", b"c", vector(1), (*F4, ("ce_id", b"a"), ("ce_id", b"a"))),
    Case("unknown-version", "CloudEvents 2", "features", b"c", vector(1), (*F4, ("ce_specversion", b"2.0"))),
    Case("unknown-version", "version not UTF-8", "features", b"c", vector(1), (*F4, ("ce_specversion", b"\xff"))),
    Case(
        "unknown-version", "a feature of tomorrow", "features", b"c", vector(1), (*F4, ("ce_type", b"cgzsl.feature.v2"))
    ),
    Case("unknown-version", "in JSON", "control", None, b'{"type":"cgzsl.rollback.v99999999999999999999","to":1}'),
    Case("unknown-type", "of another topic", "features", b"c", vector(1), (*F4, ("ce_type", b"cgzsl.sample.v1"))),
    Case("unknown-type", "empty", "features", b"c", vector(1), (*F4, ("ce_type", b""))),
    Case("unknown-type", "not UTF-8", "features", b"c", vector(1), (*F4, ("ce_type", b"\xff" * 1000))),
    Case("unknown-type", "in JSON", "features", b"c", b'{"type":"cgzsl.holdout.v1","vector":[1]}'),
    Case("type-mismatch", "header and object", "control", None, b'{"type":"cgzsl.rollback.v1","to":1}', BOUNDARY),
    Case("invalid-field", "an id with a line break", "features", b"c", vector(1), (*F4, ("ce_id", b"a\nb"))),
    Case("invalid-field", "an id of 10 MB", "features", b"c", vector(1), (*F4, ("ce_id", b"x" * 10_000_000))),
    Case("invalid-field", "an empty id", "features", b"c", vector(1), (*F4, ("ce_id", b""))),
    Case(
        "invalid-field",
        "a time without offset",
        "features",
        b"c",
        vector(1),
        (*F4, ("ce_time", b"2025-01-31T12:00:00")),
    ),
    Case("invalid-field", "a time that is a number", "features", b"c", vector(1), (*F4, ("ce_time", b"1738324800"))),
    Case(
        "invalid-field",
        "before year one",
        "features",
        b"c",
        vector(1),
        (*F4, ("ce_time", b"0001-01-01T00:00:00+14:00")),
    ),
    Case("invalid-field", "a missing header", "state", b"0", b"x", CHUNK),
    Case("invalid-field", "a count of another spelling", "state", b"0", b"x", (*CHUNK, ("ce_window", b"+1"))),
    Case("invalid-field", "digits of another script", "state", b"0", b"x", (*CHUNK, ("ce_window", "٣".encode()))),
    Case("invalid-field", "a huge count", "state", b"0", b"x", (*CHUNK, ("ce_window", b"9" * 100_000))),
    Case("invalid-field", "a count beyond 64 bits", "state", b"0", b"x", (*CHUNK, ("ce_window", b"9" * 19))),
    Case("invalid-field", "no flag", "projections", b"c", vector(1), projection(b"0", b"yes")),
    Case("invalid-field", "no number", "projections", b"c", vector(1), projection(b"\xff", b"true")),
    Case("not-finite", "a bias", "projections", b"c", vector(1), projection(b"nan", b"true")),
    # keys
    Case("missing-key", "of a feature", "features", None, vector(1), F4),
    Case("missing-key", "of a retirement", "attributes", None, None),
    Case("missing-key", "of a JSON sample", "samples", None, b'{"vector":[1]}'),
    Case("not-utf8", "the key", "features", b"\xff\xfe", vector(1), F4),
    Case("not-utf8", "the key of a retirement", "attributes", b"\x80", None),
    Case("key-mismatch", "of a feature", "features", b"a", b'{"class_id":"b","vector":[1]}'),
    Case("key-mismatch", "not UTF-8 and long", "features", b"\xff" * 1000, b'{"class_id":"b","vector":[1]}'),
    Case("key-mismatch", "of another spelling", "evaluations", b"07", json_of(generation=7, digest=SHA, samples=0)),
    Case("invalid-field", "an empty key", "features", b"", vector(1), F4),
    Case("invalid-field", "a key of 10 MB", "features", b"x" * 10_000_000, vector(1), F4),
    Case("invalid-field", "a key that clears the screen", "attributes", b"\x1b[2J", None),
    Case("invalid-field", "a key that is no number", "state", b"zero", b"x", (*CHUNK, ("ce_window", b"1"))),
    # JSON as a whole
    Case("not-json", "raw numbers without ce_dtype", "features", b"c", vector(1, 2)),
    Case("not-json", "truncated", "features", b"c", b'{"vector":[1'),
    Case("not-json", "not UTF-8", "features", b"c", b'{"vector":[1],"id":"\xff"}'),
    Case("not-json", "half a surrogate pair", "features", b"c", b'{"vector":[1],"id":"\\ud800"}'),
    Case("not-json", "too deep", "features", b"c", b'{"vector":' + b"[" * 100_000),
    Case("not-json", "a number of 5000 digits", "features", b"c", b'{"vector":[' + b"9" * 5000 + b"]}"),
    Case("not-json", "a list", "features", b"c", b"[1,2]"),
    Case("not-json", "a text", "features", b"c", b'"' + b"x" * 100_000 + b'"'),
    Case("not-json", "two objects", "control", None, b"{}{}"),
    # JSON vectors
    Case("not-finite", "NaN", "features", b"c", b'{"vector":[1,NaN]}'),
    Case("not-finite", "Infinity", "features", b"c", b'{"vector":[-Infinity]}'),
    Case("not-finite", "too large for float64", "features", b"c", b'{"vector":[1e999]}'),
    Case("not-finite", "too large for float32", "features", b"c", b'{"vector":[1e39]}'),
    Case("not-finite", "too large for float16", "features", b"c", b'{"vector":[65520],"dtype":"float16"}'),
    Case("not-finite", "a whole number too large for float64", "features", b"c", b'{"vector":[1' + b"0" * 400 + b"]}"),
    Case("wrong-dtype", "float64", "features", b"c", b'{"vector":[1],"dtype":"float64"}'),
    Case("wrong-dtype", "a list", "features", b"c", b'{"vector":[1],"dtype":["float32"]}'),
    Case("wrong-dtype", "null", "features", b"c", b'{"vector":[1],"dtype":null}'),
    Case("invalid-field", "no vector", "features", b"c", b"{}"),
    Case("invalid-field", "an empty vector", "features", b"c", b'{"vector":[]}'),
    Case("invalid-field", "a true in a vector", "features", b"c", b'{"vector":[1.0,true]}'),
    Case("invalid-field", "a text in a vector", "features", b"c", b'{"vector":[1.0,"2"]}'),
    Case("invalid-field", "a null in a vector", "features", b"c", b'{"vector":[1.0,null]}'),
    Case("invalid-field", "a nested vector", "features", b"c", b'{"vector":[[1.0]]}'),
    Case("invalid-field", "a text for a vector", "features", b"c", b'{"vector":"AACAPw=="}'),
    Case("invalid-field", "an object for a vector", "features", b"c", b'{"vector":{"0":1}}'),
    # JSON fields
    Case("invalid-field", "an unknown field", "features", b"c", b'{"vector":[1],"label":"c"}'),
    Case("invalid-field", "an unknown field of many lines", "control", None, b'{"' + b"\\n" * 5000 + b'":1}'),
    Case("invalid-field", "a type that is a number", "control", None, b'{"type":1}'),
    Case(
        "invalid-field", "a type that is a list of lists", "control", None, b'{"type":' + b"[" * 150 + b"]" * 150 + b"}"
    ),
    Case("invalid-field", "a class id that is a number", "features", b"7", b'{"class_id":7,"vector":[1]}'),
    Case("invalid-field", "a time that is a number", "features", b"c", b'{"vector":[1],"time":1738324800}'),
    Case("invalid-field", "an offset that is a text", "control", None, b'{"cut":{"features":{"0":"1"}}}'),
    Case("invalid-field", "an offset that is true", "control", None, b'{"cut":{"features":{"0":true}}}'),
    Case("invalid-field", "an offset below zero", "control", None, b'{"cut":{"features":{"0":-1}}}'),
    Case(
        "invalid-field", "an offset of 4000 digits", "control", None, b'{"cut":{"features":{"0":' + b"9" * 4000 + b"}}}"
    ),
    Case("invalid-field", "a partition of another spelling", "control", None, b'{"cut":{"features":{"01":1}}}'),
    Case("invalid-field", "a rollback to nowhere", "control", None, b'{"type":"cgzsl.rollback.v1"}'),
    Case("invalid-field", "no base64", "state", b"0", b'{"count":1,"window":1,"data":"a"}'),
    Case("invalid-field", "base64 of another script", "state", b"0", '{"count":1,"window":1,"data":"ааа="}'.encode()),
    Case("invalid-field", "no bytes", "state", b"0", b'{"count":1,"window":1,"data":""}'),
    Case("invalid-field", "an infinite fact", "windows", b"1", INFINITE_FACT),
    Case("invalid-field", "a share above one", "evaluations", b"1", json_of(digest=SHA, samples=1, seen=1.5)),
    Case("invalid-field", "a fact that is NaN", "windows", b"1", INFINITE_FACT.replace(b"1e999", b"NaN")),
    Case(
        "invalid-field", "a share that is NaN", "evaluations", b"1", json_of(digest=SHA, samples=1, seen=float("nan"))
    ),
    Case("not-finite", "a score", "predictions", b"r", b'{"status":"ok","score":Infinity}'),
]
