"""The events of every topic and how they are encoded: the contract with every producer and consumer."""

from stream_cgzsl.schemas.attribute import Attribute, Retirement
from stream_cgzsl.schemas.bulk import Batch, BulkReader, VectorRow
from stream_cgzsl.schemas.codec import MAX_BYTES, Encoding, decode, encode, foreign_headers
from stream_cgzsl.schemas.control import Boundary, Cut, FeedTask, Rollback
from stream_cgzsl.schemas.dead_letter import KEPT_BYTES, DeadLetter
from stream_cgzsl.schemas.errors import InvalidEvent
from stream_cgzsl.schemas.evaluation import EXAMPLE_BUCKETS, Evaluation, harmonic_mean
from stream_cgzsl.schemas.event import Event, VectorEvent
from stream_cgzsl.schemas.feature import Feature, Holdout
from stream_cgzsl.schemas.foreign import DECODED_ROLES, Decoder, decode_with
from stream_cgzsl.schemas.message import Headers, Message
from stream_cgzsl.schemas.projection import ENCODER_KEY, EncoderChunk, Projection, Withdrawal
from stream_cgzsl.schemas.roles import ROLES, Role
from stream_cgzsl.schemas.sample import Candidate, Prediction, Sample
from stream_cgzsl.schemas.state import CHUNK_BYTES, StateChunk
from stream_cgzsl.schemas.vector import Array
from stream_cgzsl.schemas.window import (
    POLICIES,
    EncoderLayer,
    Genesis,
    LedgerRecord,
    Prequential,
    Published,
    Range,
    Serving,
    Update,
)

__all__ = [
    "CHUNK_BYTES",
    "DECODED_ROLES",
    "ENCODER_KEY",
    "EXAMPLE_BUCKETS",
    "KEPT_BYTES",
    "MAX_BYTES",
    "POLICIES",
    "ROLES",
    "Array",
    "Attribute",
    "Batch",
    "Boundary",
    "BulkReader",
    "Candidate",
    "Cut",
    "DeadLetter",
    "Decoder",
    "EncoderChunk",
    "EncoderLayer",
    "Encoding",
    "Evaluation",
    "Event",
    "Feature",
    "FeedTask",
    "Genesis",
    "Headers",
    "Holdout",
    "InvalidEvent",
    "LedgerRecord",
    "Message",
    "Prediction",
    "Prequential",
    "Projection",
    "Published",
    "Range",
    "Retirement",
    "Role",
    "Rollback",
    "Sample",
    "Serving",
    "StateChunk",
    "Update",
    "VectorEvent",
    "VectorRow",
    "Withdrawal",
    "decode",
    "decode_with",
    "encode",
    "foreign_headers",
    "harmonic_mean",
]
