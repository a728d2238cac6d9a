"""Several Kafka brokers on this machine that form one cluster: what one broker cannot show, such as the loss of one.

Every record has up to three copies, and a write needs two of them; so with three brokers one may be down.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stream_cgzsl.demo import broker
from stream_cgzsl.demo.broker import Broker
from stream_cgzsl.demo.jars import jars

HEAP_MB = 320


def start(
    directory: Path, brokers: int = 3, port: int = 0, properties: Mapping[str, str] | None = None
) -> dict[int, Broker]:
    """Starts brokers 1, 2, ... and returns them when all answer; the first listens on `port` (0: any free one).

    `properties` are added to those of every broker. Raises `BusUnavailable` if one cannot start, with none left.
    """
    numbers = range(1, brokers + 1)
    folders = {number: directory / f"broker-{number}" for number in numbers}
    controllers = {number: broker.free_port() for number in numbers}
    copies = str(min(3, brokers))
    needed = str(min(2, brokers))
    shared = {
        "controller.quorum.voters": ",".join(f"{number}@127.0.0.1:{c}" for number, c in controllers.items()),
        "default.replication.factor": copies,
        "min.insync.replicas": needed,
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": needed,
        **(properties or {}),
    }
    cluster_id = broker.new_cluster_id()
    jars()

    def prepare(number: int) -> str:
        ports = (port if number == 1 else 0, controllers[number])
        return broker.prepare(folders[number], ports, {**shared, "node.id": str(number)}, cluster_id)

    with ThreadPoolExecutor(brokers) as together:
        addresses = dict(zip(numbers, together.map(prepare, numbers), strict=True))
    return _launch(folders, addresses)


def _launch(folders: Mapping[int, Path], addresses: Mapping[int, str]) -> dict[int, Broker]:
    """Starts all at once, because none is ready before most of them are there."""
    started: dict[int, Broker] = {}
    failed: list[BaseException] = []
    with ThreadPoolExecutor(len(folders)) as together:
        launching = {number: together.submit(broker.launch, folder, HEAP_MB) for number, folder in folders.items()}
    for number, launched in launching.items():
        error = launched.exception()
        if error is None:
            started[number] = Broker(folders[number], addresses[number], launched.result(), HEAP_MB)
        else:
            failed.append(error)
    for error in failed:
        kill(started)
        raise error
    return started


def kill(brokers: Mapping[int, Broker]) -> None:
    for each in brokers.values():
        each.kill()


def url(brokers: Mapping[int, Broker]) -> str:
    return "kafka://" + ",".join(started.address for started in brokers.values())


def start_detached(port: int, directory: Path, brokers: int) -> str:
    """Starts brokers that outlive this process and returns their addresses, `host:port,host:port`.

    If some are already running in `directory`, returns their addresses. Those that were stopped there are started again
    with their data and ports.
    """
    folders = _folders(directory)
    running = [found[1] for folder in folders.values() if (found := broker.detached(folder)) is not None]
    if running:
        return ",".join(running)
    if folders:
        started = _launch(folders, {number: broker.address_in(folder) for number, folder in folders.items()})
    else:
        started = start(directory, brokers, port)
    for each in started.values():
        broker.detach(each)
    return ",".join(each.address for each in started.values())


def stop_detached(directory: Path) -> bool:
    """Ends the brokers that `start_detached` started in `directory` and keeps their data. False if none is running.

    They are killed: the last ones could not shut down cleanly without the others, and nothing acknowledged is lost.
    """
    ended = [broker.stop_detached(folder, patience=0.0) for folder in _folders(directory).values()]
    return any(ended)


def _folders(directory: Path) -> dict[int, Path]:
    return {int(folder.name.partition("-")[2]): folder for folder in sorted(directory.glob("broker-[0-9]*/"))}
