"""`watch`: serve a page that follows a running stream, until Ctrl-C."""

from __future__ import annotations

import argparse
import logging

from stream_cgzsl.cli.flags import STREAM, add, settings_from, topics_from

log = logging.getLogger("watch")

PORT = 8050


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, STREAM)
    parser.add_argument("--host", help="address of the page (default: 127.0.0.1, for this machine only)")
    parser.add_argument("--port", help=f"port of the page; 0: any free one (default: {PORT})")


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.report.live import watch
    from stream_cgzsl.runtime.http import is_loopback
    from stream_cgzsl.workers.process import start_logging, stop_on_signals

    settings = settings_from(arguments)
    start_logging(settings.log_level)
    if not is_loopback(settings.host):
        log.warning("everyone who can reach %s can watch the stream: the page has no password", settings.host)
    port = PORT if settings.port is None else settings.port
    watch(settings.bus, topics_from(settings), settings.host, port, stop_on_signals(), _print_url)


def _print_url(url: str) -> None:
    print(f"{url} shows the stream; press Ctrl-C to stop", flush=True)
