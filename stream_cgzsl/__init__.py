"""Continual generalised zero-shot learning from a stream of events."""

__version__ = "0.1.0"
