"""The report in a browser: on a desktop and a phone, light and dark, for eyes, keyboards and screen readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import documents
import pytest
from browsing import focus_stops, heading_levels, images, overflow, poor_contrasts, visiting, well_ordered
from playwright.sync_api import Browser

from stream_cgzsl.report.page import render

SCREENS = {
    "run": [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")],
    "crowded": [(390, "light")],
    "bare": [(390, "dark")],
    "hostile": [(1280, "light")],
    "ablation": [(1280, "dark"), (390, "light")],
    "sweep": [(390, "dark")],
    "trickle": [(1280, "dark"), (390, "light")],
    "few_shot": [(1280, "light"), (390, "dark")],
    "trickle_study": [(1280, "light")],
}
"""On what each document is looked at."""


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages as files, as people get them."""
    folder: Path = tmp_path_factory.mktemp("reports")
    found = {}
    for name in SCREENS:
        file = folder / f"{name}.html"
        file.write_text(render(getattr(documents, name)()), encoding="utf-8")
        found[name] = file.as_uri()
    return found


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [(n, *screen) for n, screens in SCREENS.items() for screen in screens]
)
def test_it_fits_and_is_quiet_and_legible(
    browser: Browser, urls: dict[str, str], name: str, width: int, scheme: Any
) -> None:
    with visiting(browser, urls[name], width, scheme) as visit:
        page = visit.page
        assert overflow(page) == 0
        assert poor_contrasts(page) == []
        assert well_ordered(heading_levels(page)), heading_levels(page)
        named = images(page)
        assert len(named) == page.locator("svg.drawing").count() and all(named)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert overflow(page) == 0
        assert (visit.complaints, visit.strangers) == ([], [])


def test_the_colours_follow_the_reader_and_the_button(browser: Browser, urls: dict[str, str]) -> None:
    def paper() -> str:
        colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return colour

    with visiting(browser, urls["sweep"], scheme="dark") as visit:
        page = visit.page
        night = paper()
        page.emulate_media(color_scheme="light")
        day = paper()
        button = page.get_by_role("button", name="Dark")
        button.click()
        assert (paper(), button.get_attribute("aria-pressed")) == (night, "true")
        button.click()
        assert (paper(), button.get_attribute("aria-pressed")) == (day, "false")
        assert day != night


def test_the_tab_key_reaches_everything_in_order_and_can_be_seen(browser: Browser, urls: dict[str, str]) -> None:
    with visiting(browser, urls["sweep"]) as visit:
        stops = focus_stops(visit.page)
        assert [stop["text"] for stop in stops] == [
            "Skip to the result",
            "Dark",
            "The result",
            "Every row",
            "Run it again",
            "Read mSA, mUA and mH by replayed features a class",
            "The figures as a table",
            "All rows; accuracies, forgetting and area in percent",
            "The command",
            "Copy the command",
        ]
        assert all(stop["visible"] for stop in stops), [stop for stop in stops if not stop["visible"]]


def test_a_chart_is_read_with_the_arrow_keys(browser: Browser, urls: dict[str, str]) -> None:
    with visiting(browser, urls["run"]) as visit:
        chart = visit.page.locator("figure", has_text="As of each window").first
        slider = chart.get_by_role("slider")
        slider.focus()
        slider.press("Home")
        slider.press("ArrowRight")
        second = documents.run().windows[1]
        accuracies = (
            f"seen {second.seen_accuracy:.1f}, unseen {second.unseen_accuracy:.1f}, harmonic {second.harmonic:.1f}"
        )
        assert slider.get_attribute("aria-valuetext") == f"window 2, {accuracies}"
        assert chart.locator(".tip").is_visible()
        slider.blur()
        assert not chart.locator(".tip").is_visible()


def test_a_chart_is_read_with_the_pointer(browser: Browser, urls: dict[str, str]) -> None:
    with visiting(browser, urls["run"], 390) as visit:
        chart = visit.page.locator("figure", has_text="As of each window").first
        chart.locator("svg.drawing").hover(position={"x": 1, "y": 60})
        first = documents.run().windows[0]
        assert chart.locator(".tip").inner_text().splitlines() == [
            "window 1",
            f"seen {first.seen_accuracy:.1f}",
            f"unseen {first.unseen_accuracy:.1f}",
            f"harmonic {first.harmonic:.1f}",
        ]
        assert overflow(visit.page) == 0


def test_the_command_is_copied(browser: Browser, urls: dict[str, str]) -> None:
    with visiting(browser, urls["ablation"], permissions=["clipboard-read", "clipboard-write"]) as visit:
        visit.page.get_by_role("button", name="Copy the command").click()
        visit.page.get_by_role("button", name="Copied").wait_for()
        assert visit.page.evaluate("navigator.clipboard.readText()") == documents.ablation().command


def test_without_scripts_it_says_the_same(browser: Browser, urls: dict[str, str]) -> None:
    with visiting(browser, urls["run"], 390, java_script_enabled=False) as visit:
        page = visit.page
        assert page.get_by_role("heading", level=1).inner_text() == documents.run().title
        named = images(page)
        assert len(named) == page.locator("svg.drawing").count() > 10 and all(named)
        assert all(box and box["height"] > 50 for box in (d.bounding_box() for d in page.locator("svg.drawing").all()))
        assert page.get_by_role("button").count() == 0
        page.locator("summary").first.click()
        assert page.get_by_role("table").first.is_visible()


def test_hostile_names_are_only_text(browser: Browser, urls: dict[str, str]) -> None:
    with visiting(browser, urls["hostile"]) as visit:
        page = visit.page
        assert page.title() == documents.HOSTILE + "CUB"
        assert page.evaluate("[document.scripts.length, document.images.length]") == [1, 0]
        assert page.get_by_role("heading", level=1).inner_text() == documents.HOSTILE + "CUB"
        assert page.get_by_role("heading", level=3, name=documents.HOSTILE + "Hor", exact=True).count() == 1


def test_it_prints_in_full_on_white(browser: Browser, urls: dict[str, str]) -> None:
    with visiting(browser, urls["run"], 794, "dark") as visit:
        page = visit.page
        page.emulate_media(media="print", color_scheme="dark")
        assert poor_contrasts(page) == []
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 26, 24)"
        assert overflow(page) == 0
        assert page.get_by_role("button").count() == 0
