"""`replay`: train the windows of a ledger again and compare the results; or learn them with other settings.

Verdicts: identical; equivalent (another environment, within the stated bounds); different; inputs differ; not
verifiable (records expired). The exit code is 0 when all are identical or equivalent; else 10 if any is different, else
11 if inputs differ, else 12 if some cannot be verified.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from stream_cgzsl.bus import Bus, connect
from stream_cgzsl.bus.topics import Topics
from stream_cgzsl.cli.flags import DECODING, STREAM, add, decoding_topics, settings_from
from stream_cgzsl.cli.progress import progress
from stream_cgzsl.errors import UsageError
from stream_cgzsl.runtime.settings import pairs

if TYPE_CHECKING:
    from stream_cgzsl.windows.recorded import Ledger


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verify", action="store_true", help="compare with the ledger (the default without --with)")
    parser.add_argument(
        "--from", dest="first", type=int, default=1, metavar="N", help="start at window N, from a snapshot"
    )
    parser.add_argument("--until", type=int, metavar="N", help="stop after window N")
    parser.add_argument(
        "--with",
        dest="overrides",
        action="append",
        metavar="NAME=VALUE",
        help="learner=NAME, or an option of the learner; may be repeated",
    )
    parser.add_argument("--to", metavar="PREFIX", help="with --with: publish the result under this prefix")
    add(parser, STREAM, DECODING, ("device", "threads"))


def run(arguments: argparse.Namespace) -> int:
    from stream_cgzsl.runtime.devices import choose_device
    from stream_cgzsl.runtime.environment import prepare_torch
    from stream_cgzsl.windows.recorded import Ledger

    settings = settings_from(arguments)
    topics = decoding_topics(settings)
    if arguments.verify and arguments.overrides:
        raise UsageError("--verify compares with the ledger, --with changes what is learned: choose one")
    if arguments.to and not arguments.overrides:
        raise UsageError("--to publishes what --with learned: say what to change with --with")
    if arguments.overrides and arguments.first != 1:
        raise UsageError("--with learns all windows again: leave --from out")
    prepare_torch(settings.threads)
    device = choose_device(settings.device)
    with connect(settings.bus) as bus:
        topics.require(bus, ("attributes", "features", "windows"))
        ledger = Ledger.open(bus, topics)
        if ledger is None or not ledger.last.number:
            raise UsageError(f"{bus.url}: the stream {topics.prefix!r} has no window to replay")
        if arguments.overrides:
            return _what_if(bus, topics, ledger, arguments, device)
        return _verify(bus, topics, ledger, arguments, device)


def _verify(bus: Bus, topics: Topics, ledger: Ledger, arguments: argparse.Namespace, device: str) -> int:
    from stream_cgzsl.history.replay import exit_code, verify

    verdicts = []
    last = ledger.last.number if arguments.until is None else arguments.until
    with progress() as show:
        for replayed in verify(bus, topics, ledger, device, arguments.first, arguments.until):
            verdict = f"{replayed.verdict.value}: {replayed.detail}"
            print(f"window {replayed.number:4} {replayed.kind:9} {verdict}", flush=True)
            verdicts.append(replayed.verdict)
            show("windows", len(verdicts), last - arguments.first + 1)
    print(", ".join(f"{verdicts.count(verdict)} {verdict.value}" for verdict in dict.fromkeys(verdicts)))
    return exit_code(verdicts)


def _what_if(bus: Bus, topics: Topics, ledger: Ledger, arguments: argparse.Namespace, device: str) -> int:
    from contextlib import ExitStack

    from stream_cgzsl.history.relearn import INPUT_ROLES, relearn, sharing_inputs
    from stream_cgzsl.history.restore import configuration_of
    from stream_cgzsl.history.stream_learner import Configuration

    old = configuration_of(ledger, ledger.last)
    changes: dict[str, Any] = pairs(arguments.overrides, "--with")
    learner = changes.pop("learner", old.learner)
    options = {**(old.options if learner == old.learner else {}), **changes}
    configuration = Configuration(learner, options, old.memory_bytes, topics.training_decoders())
    last = ledger.last.number if arguments.until is None else arguments.until
    with ExitStack() as stack:
        into = None
        if arguments.to is not None:
            target = sharing_inputs(topics, arguments.to)
            bus.create(spec for spec in target.specs() if spec.name not in {target[role] for role in INPUT_ROLES})
            if bus.end_offsets(target["windows"])[0]:
                raise UsageError(f"{bus.url}: the prefix {arguments.to!r} has a ledger already; choose another")
            into = (stack.enter_context(bus.publisher(f"{arguments.to}.learner")), target)
        show = stack.enter_context(progress())
        for window in relearn(bus, topics, ledger, configuration, device, arguments.until, into):
            result = window.error or window.generation.digest[:12]
            print(f"window {window.number:4} {window.kind:9} {result}", flush=True)
            show("windows", window.number, last)
    return 0
