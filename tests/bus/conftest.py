"""A broker of our own, for tests that end it or want to be asked who they are."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from own_broker import OwnBroker, running

from stream_cgzsl.bus import broker
from stream_cgzsl.errors import BusUnavailable


@pytest.fixture(scope="session")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBroker]:
    try:
        broker.jars()
    except BusUnavailable as error:
        pytest.skip(f"this test needs a broker that it may end and start again: {error}")
    if shutil.which("openssl") is None:
        pytest.skip("this test needs certificates, and there is no `openssl` to make them")
    with running(tmp_path_factory.mktemp("own-broker")) as started:
        yield started
