"""Containers for real, where an engine and the images are: the test broker's container, and everything together."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from our_commands import DEPLOY
from patience import until

from stream_cgzsl.bus import connect
from stream_cgzsl.bus.topics import Topics

TRY = DEPLOY / "try"
_LOOK = f'. {TRY}/engine.sh && printf "%s\\n" "$engine" "${{CONTAINERS_CONF:-}}" && is_here "$IMAGE"'


def engine_with(image: str) -> tuple[str, str]:
    """The engine's name and the configuration it needs. Skips the test where it, or the image, is not to be had."""
    names = {"kafka": "$kafka_image", "ours": "$our_image"}
    done = subprocess.run(
        ["bash", "-c", _LOOK.replace("$IMAGE", names[image])], capture_output=True, text=True, timeout=120
    )
    if done.returncode == 3:
        pytest.skip(done.stderr.strip())
    if done.returncode:
        pytest.skip(f"this engine has no image to start: `make containers` makes it, once ({done.stderr.strip()})")
    engine, configuration = done.stdout.splitlines()[:2]
    return engine, configuration


@pytest.fixture
def docker_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An engine that speaks Docker's protocol, for programs that look for Docker."""
    engine, configuration = engine_with("kafka")
    if engine == "docker":
        yield
        return
    if configuration:
        monkeypatch.setenv("CONTAINERS_CONF", configuration)
    socket = tmp_path / "engine.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{socket}")
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")  # its image cannot be pulled everywhere
    with subprocess.Popen(["podman", "system", "service", "--time", "0", f"unix://{socket}"]) as service:
        until(socket.exists, "podman's socket")
        yield
        service.terminate()


@pytest.mark.usefixtures("docker_host")
def test_the_test_broker_runs_in_a_container_and_leaves_none() -> None:
    from kafka_container import start_container
    from testcontainers.core.docker_client import DockerClient

    docker = DockerClient().client
    before = {container.id for container in docker.containers.list(all=True)}
    url, stop = start_container()
    try:
        with connect(url) as bus:
            bus.create(Topics("t").specs(2))
            assert Topics("t").problems(bus) == []
    finally:
        stop()
    assert {container.id for container in docker.containers.list(all=True)} <= before


def test_everything_runs_in_containers_and_leaves_none() -> None:
    engine_with("ours")
    done = subprocess.run([TRY / "run.sh"], capture_output=True, text=True, timeout=1800)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert "nothing is left" in done.stdout
