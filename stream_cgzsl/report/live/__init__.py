"""A page that follows a running stream from the bus alone: `watch` serves it until told to stop."""

from stream_cgzsl.report.live.watching import watch

__all__ = ["watch"]
