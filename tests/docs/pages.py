"""Types the commands of a page as a reader would: one shell per page, in an empty folder, from top to bottom."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PATIENCE_SECONDS = 240.0

_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$|^(?P<stop><!-- stop -->)$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block. Its info string: a language, then words such as `background`, `needs=docker` or a file's name."""

    language: str
    words: tuple[str, ...]
    text: str

    def option(self, name: str) -> str | None:
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"{name}=")), None)

    @property
    def file(self) -> str | None:
        return next((word for word in self.words if re.fullmatch(r"[\w-]+\.\w+", word)), None)


STOP = Block("stop", (), "")


def blocks(page: str) -> list[Block]:
    found = []
    for match in _FENCE.finditer((DOCS / page).read_text()):
        if match["stop"]:
            found.append(STOP)
            continue
        language, *words = shlex.split(match["info"]) or [""]
        found.append(Block(language, tuple(words), match["text"]))
    return found


@dataclass
class Reader:
    """Types pages. `changes` are replacements in what is typed, such as a port that is free here."""

    folder: Path
    environment: dict[str, str]
    changes: dict[str, str] = field(default_factory=dict)
    _background: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def type(self, page: str, can: frozenset[str]) -> str:
        """Types the whole page, except blocks that need something not in `can`. Returns what was printed."""
        printed = []
        try:
            for number, block in enumerate(blocks(page)):
                needs = block.option("needs")
                if block.file is not None:
                    (self.folder / block.file).write_text(block.text)
                elif block is STOP:
                    self.stop()
                elif block.language in ("sh", "console") and (needs is None or needs in can):
                    printed.append(self._run(f"{page}, block {number}", block))
                elif "run" in block.words:
                    typed = Block("sh", (), f"python - <<'END'\n{block.text}END\n")
                    printed.append(self._run(f"{page}, block {number}", typed))
        finally:
            self.stop()
        return "".join(printed)

    def _run(self, name: str, block: Block) -> str:
        text = block.text
        for typed, instead in self.changes.items():
            text = text.replace(typed, instead)
        remembered = self.folder / ".variables"  # exported variables stay, as in a terminal
        remembered.touch()
        script = f"set -euo pipefail\n. {remembered}\n{text}\n"
        if "background" in block.words:
            self._start(name, script, block.option("until") or "")
            return ""
        done = subprocess.run(
            ["bash", "-c", f"{script}export -p > {remembered}\n"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, f"{name}:\n{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _start(self, name: str, script: str, until: str) -> None:
        log = self.folder / f"background-{len(self._background)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._background.append(process)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while until not in log.read_text():
            assert process.poll() is None and time.monotonic() < deadline, f"{name}:\n{log.read_text()}"
            time.sleep(0.1)

    def stop(self) -> None:
        """Ctrl-C in every other terminal."""
        for process in self._background:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
        for process in self._background:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        self._background.clear()


def environment(folder: Path) -> dict[str, str]:
    """The environment of a reader: this Python and its programs first, none of our variables."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CGZSL_")}
    return {**clean, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PWD": str(folder)}
