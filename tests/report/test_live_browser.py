"""The live page in a real browser, with a real learner, scorer and stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import documents
import pytest
from browsing import focus_stops, heading_levels, images, overflow, poor_contrasts, visiting, well_ordered
from helpers import (
    CLASSES,
    NO_DESCRIBE,
    TOPICS,
    Producer,
    description,
    learner,
    new_bus,
    questions_about,
    scorer,
    settings_for,
    sqlite_url,
    wait_for_answers,
    wait_for_window,
)
from listening import watched
from playwright.sync_api import Browser, Page, expect

from stream_cgzsl.bus import Bus
from stream_cgzsl.report.live.parts import Parts
from stream_cgzsl.report.live.server import LiveServer
from stream_cgzsl.schemas import Evaluation, Message

expect.set_options(timeout=30_000)


@dataclass
class Stream:
    bus: Bus
    producer: Producer


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """A stream with a learner and a scorer at work, and one window learned."""
    folder: Path = tmp_path_factory.mktemp("live")
    with new_bus(sqlite_url(folder)) as bus:
        settings = settings_for(bus, **NO_DESCRIBE)
        with learner(settings), scorer(settings):
            producer = Producer(bus)
            producer.describe(*CLASSES[:5])
            producer.teach(*CLASSES[:3])
            producer.boundary("first")
            wait_for_window(bus, 1)
            yield Stream(bus, producer)


def test_what_happens_on_the_stream_happens_on_the_page(browser: Browser, stream: Stream) -> None:
    bus, producer = stream.bus, stream.producer
    with watched(bus.url, TOPICS) as url, visiting(browser, url) as visit:
        page = visit.page
        expect(page.locator("#state")).to_have_text("following")
        expect(page.get_by_role("heading", level=1)).to_have_text("t")
        expect(cells(page, "seen")).to_have_count(3)
        expect(cells(page)).to_have_count(5)

        hostile = description(CLASSES[5]).model_copy(update={"class_id": documents.HOSTILE})
        producer.events("attributes", hostile)
        producer.teach(CLASSES[3])
        producer.send("features", Message(b"nobody", b"{}", ()))
        producer.boundary("second")
        record = wait_for_window(bus, 2)
        expect(page.locator("#windows-table tbody tr").first).to_contain_text("second")
        expect(cells(page, "seen")).to_have_count(4)
        expect(page.locator(".cells li", has_text=documents.HOSTILE)).to_have_count(1)
        expect(page.locator("#changes li", has_text=CLASSES[3])).to_have_text(f"{CLASSES[3]} learned in window 2")
        expect(page.locator("#letters-table tbody tr")).to_contain_text(["invalid-field"])
        expect(page.locator("#summary")).to_contain_text("It knows 4 seen classes and 2 unseen.")

        questions = questions_about(CLASSES[0], count=2)
        producer.ask(questions)
        wait_for_answers(bus, questions)
        expect(page.locator("#predictions-table tbody tr")).to_have_count(2)

        assert record.generation is not None
        evaluation = Evaluation(generation=2, digest=record.generation, samples=9, seen=0.8, unseen=0.6, harmonic=0.686)
        producer.events("evaluations", evaluation)
        expect(page.get_by_role("img", name="Accuracy on the holdout")).to_be_visible()
        expect(page.locator("#headline")).to_contain_text("68.6")

        assert page.evaluate("[document.images.length, document.scripts.length]") == [0, 2]
        assert page.title() == "t, live"
        assert (visit.complaints, visit.strangers) == ([], [])


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
def test_it_fits_and_is_legible(browser: Browser, stream: Stream, width: int, scheme: Any) -> None:
    with watched(stream.bus.url, TOPICS) as url, visiting(browser, url, width, scheme) as visit:
        page = visit.page
        expect(page.locator("#windows-table tbody tr").first).to_be_visible()
        expect(page.locator("#headline dd").first).to_be_visible()
        assert overflow(page) == 0
        assert poor_contrasts(page) == []
        assert well_ordered(heading_levels(page)), heading_levels(page)
        assert all(images(page))
        assert (visit.complaints, visit.strangers) == ([], [])


def test_the_tab_key_reaches_everything_and_the_page_speaks_politely(browser: Browser, stream: Stream) -> None:
    with watched(stream.bus.url, TOPICS) as url, visiting(browser, url) as visit:
        page = visit.page
        expect(page.locator("#windows-table tbody tr").first).to_be_visible()
        stops = focus_stops(page)
        assert [stop["text"] for stop in stops] == [
            "Skip to the stream",
            "Dark",
            "The latest windows, newest first",
            "The latest predictions, newest first",
            "The latest records that could not be used",
        ]
        assert all(stop["visible"] for stop in stops)
        expect(page.get_by_role("status")).to_have_text("following")  # said once, not at every beat
        assert page.locator("[aria-live], [role=status], [role=alert]").count() == 1


def test_a_page_whose_server_is_gone_says_so_and_comes_back_by_itself(browser: Browser, stream: Stream) -> None:
    with ExitStack() as server:
        url = server.enter_context(watched(stream.bus.url, TOPICS))
        port = int(url.rstrip("/").rpartition(":")[2])
        with visiting(browser, url) as visit:
            page = visit.page
            expect(page.locator("#state")).to_have_text("following")
            known = cells(page).count()
            server.close()
            expect(page.locator("#state")).to_have_text("no connection")
            expect(page.locator("#problem")).to_contain_text("retrying")
            assert cells(page).count() == known  # what was known stays to be read
            server.enter_context(watched(stream.bus.url, TOPICS, port))
            expect(page.locator("#state")).to_have_text("following")
            expect(page.locator("#problem")).to_be_hidden()
            stream.producer.describe(CLASSES[6])
            stream.producer.teach(CLASSES[6])
            stream.producer.boundary("after the restart")
            expect(page.locator("#windows-table tbody tr").first).to_contain_text("after the restart")
            expect(page.locator(".cells li", has_text=CLASSES[6])).to_have_count(1)


def test_an_unavailable_or_silent_bus_is_reported(browser: Browser) -> None:
    parts = Parts()
    parts.put(status={"state": "following", "problem": None, "looks": 1})
    with closing(LiveServer("127.0.0.1", 0, parts)) as server, visiting(browser, server.url) as visit:
        page = visit.page
        expect(page.locator("#state")).to_have_text("following")
        page.clock.set_system_time(datetime.now() + timedelta(seconds=15))
        expect(page.locator("#state")).to_have_text("bus unavailable")
        expect(page.locator("#problem")).to_contain_text("The bus has not answered since")
        parts.put(status={"state": "away", "problem": f"{documents.HOSTILE} is away", "looks": 1})
        expect(page.locator("#problem")).to_have_text(f"{documents.HOSTILE} is away")
        assert poor_contrasts(page) == []
        parts.put(status={"state": "following", "problem": None, "looks": 2})
        expect(page.locator("#state")).to_have_text("following")
        expect(page.locator("#problem")).to_be_hidden()


def test_more_classes_than_names_fit_are_cells_that_still_have_names(browser: Browser) -> None:
    parts = Parts()
    shown = [[f"class {number}", number % 3 > 0] for number in range(717)]
    parts.put(classes={"shown": shown, "more": 40, "changes": []})
    with closing(LiveServer("127.0.0.1", 0, parts)) as server, visiting(browser, server.url, 390) as visit:
        page = visit.page
        expect(cells(page)).to_have_count(717)
        expect(cells(page, "seen")).to_have_count(478)
        expect(page.locator("#more")).to_have_text("and 40 more")
        assert cells(page).nth(3).text_content() == "class 3, unseen"
        assert overflow(page) == 0


def cells(page: Page, kind: str | None = None) -> Any:
    return page.locator(".cells li" if kind is None else f".cells li.{kind}")
