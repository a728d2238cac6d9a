"""What browsers get: the newest version of each named part of the page's state."""

from __future__ import annotations

import json
import threading
from typing import Any


class Parts:
    """Written by one thread, awaited by one thread per browser. A slow browser skips outdated versions."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._texts: dict[str, tuple[int, str]] = {}
        self._version = 0
        self._closed = False

    def put(self, **values: Any) -> None:
        """Makes these the newest. An unchanged part wakes nobody."""
        texts = {name: json.dumps(value, allow_nan=False, separators=(",", ":")) for name, value in values.items()}
        with self._changed:
            new = {name: text for name, text in texts.items() if self._texts.get(name, (0, None))[1] != text}
            if new:
                self._version += 1
                self._texts |= {name: (self._version, text) for name, text in new.items()}
                self._changed.notify_all()

    def wait(self, since: int, timeout: float) -> tuple[int, dict[str, str]] | None:
        """The current version and the parts that changed after version `since`, as JSON; no parts on timeout.

        None after `close`.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._version > since, timeout)
            if self._closed:
                return None
            return self._version, {name: text for name, (version, text) in self._texts.items() if version > since}

    def close(self) -> None:
        """Ends all waits, present and future."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
