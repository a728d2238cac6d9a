"""A live page of a running stream. It reads only the bus; `watch` serves it until stopped."""

from stream_cgzsl.report.live.watching import watch

__all__ = ["watch"]
