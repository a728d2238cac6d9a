"""What is handed to browsers: named parts of the page's state, each the newest there is."""

from __future__ import annotations

import json
import threading
from typing import Any


class Parts:
    """Written by one thread, awaited by one thread a browser. A browser that is slow misses what is outdated anyway."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._texts: dict[str, tuple[int, str]] = {}
        self._version = 0
        self._closed = False

    def put(self, **values: Any) -> None:
        """Makes these the newest. A part that is as it was wakes nobody."""
        texts = {name: json.dumps(value, allow_nan=False, separators=(",", ":")) for name, value in values.items()}
        with self._changed:
            new = {name: text for name, text in texts.items() if self._texts.get(name, (0, None))[1] != text}
            if new:
                self._version += 1
                self._texts |= {name: (self._version, text) for name, text in new.items()}
                self._changed.notify_all()

    def wait(self, since: int, timeout: float) -> tuple[int, dict[str, str]] | None:
        """The version now and the parts that changed after version `since`, as JSON; none after `timeout` seconds.

        None when there will be no more.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._version > since, timeout)
            if self._closed:
                return None
            return self._version, {name: text for name, (version, text) in self._texts.items() if version > since}

    def close(self) -> None:
        """Ends every wait, and all that come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
