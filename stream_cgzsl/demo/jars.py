"""The released jars of Apache Kafka, downloaded once with Maven, and how to run them with Java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from stream_cgzsl.errors import BusUnavailable

VERSION = "4.3.0"
_SCALA = "2.13"
_SLF4J = "1.7.36"
_JAVA = 17

_POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>stream-cgzsl</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_{_SCALA}</artifactId><version>{VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>{_SLF4J}</version>
    </dependency>
  </dependencies>
</project>
"""


def jars() -> Path:
    """The folder with Kafka's jars, downloaded with Maven the first time. Raises `BusUnavailable` if that fails."""
    _require_java()
    folder = cache() / f"kafka-{VERSION}"
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise BusUnavailable(
            f"cannot download Kafka {VERSION}: no `mvn` on the PATH; install Maven (Debian: apt install maven)"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        (Path(made) / "pom.xml").write_text(_POM)
        downloaded = Path(made) / "jars"
        command = [maven, "-q", "-B", "-f", str(Path(made) / "pom.xml"), "dependency:copy-dependencies"]
        done = subprocess.run(
            [*command, "-DincludeScope=runtime", f"-DoutputDirectory={downloaded}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BusUnavailable(f"cannot download Kafka {VERSION} with Maven:\n{(done.stdout + done.stderr)[-2000:]}")
        try:
            downloaded.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process has downloaded the same jars
                raise
    return folder


def _require_java() -> None:
    java = shutil.which("java")
    advice = f"Kafka {VERSION} needs Java {_JAVA} or newer (Debian: apt install openjdk-17-jre-headless)"
    if java is None:
        raise BusUnavailable(f"no `java` on the PATH; {advice}")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', shown)
    if found is None or int(found.group(1)) < _JAVA:
        raise BusUnavailable(f"{java} is {shown.splitlines()[0] if shown else 'not a Java'}; {advice}")


def java(main: str, heap_mb: int) -> list[str]:
    """A JVM tuned for a fast start and little memory, not for throughput."""
    return ["java", f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*", main]


def cache() -> Path:
    """Where downloads and the data of a detached broker are."""
    return Path(os.environ.get("CGZSL_CACHE") or Path.home() / ".cache" / "stream-cgzsl")
