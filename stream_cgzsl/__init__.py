"""Continual generalised zero-shot learning from a stream of events: what a library user needs. Imports no torch."""

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.learners import create as create_learner
from stream_cgzsl.learners.interface import Space
from stream_cgzsl.serving.generation import Generation
from stream_cgzsl.serving.projections import Match, Projections
from stream_cgzsl.version import __version__
from stream_cgzsl.windows.producer import Producer
from stream_cgzsl.windows.window import Window

__all__ = [
    "Bus",
    "Generation",
    "Match",
    "Producer",
    "Projections",
    "Space",
    "Topics",
    "Window",
    "__version__",
    "connect",
    "create_learner",
]
