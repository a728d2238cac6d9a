"""Opening a page as a reader would, and what a careful one looks at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Route


@dataclass
class Visit:
    """An open page, everything it complained about, and every request to another place than its own."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)


@contextmanager
def visiting(browser: Browser, url: str, width: int = 1280, scheme: Any = "light", **options: Any) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, **options)
    page = context.new_page()
    page.set_default_timeout(20_000)
    visit = Visit(page)
    home = urlsplit(url)

    def check(route: Route) -> None:
        there = urlsplit(route.request.url)
        if (there.scheme, there.netloc) == (home.scheme, home.netloc) or there.scheme == "data":
            route.continue_()
        else:
            visit.strangers.append(route.request.url)
            route.abort()

    page.route("**/*", check)
    page.on("console", lambda m: visit.complaints.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    page.goto(url)
    yield visit
    context.close()


def overflow(page: Page) -> float:
    """By how many pixels the page is wider than its screen."""
    wider: float = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wider


def heading_levels(page: Page) -> list[int]:
    levels: list[int] = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => Number(h.tagName[1]))"
    )
    return levels


def well_ordered(levels: list[int]) -> bool:
    """One h1, first, and no level is skipped on the way down."""
    return levels[:1] == [1] and levels.count(1) == 1 and all(after <= before + 1 for before, after in pairwise(levels))


def images(page: Page) -> list[str]:
    """The accessible names of all images; empty for one without a name."""
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    shown = [node for node in nodes if not node["ignored"] and node["role"]["value"] in ("image", "img")]
    return [node["name"]["value"] for node in shown]


def focus_stops(page: Page, most: int = 400) -> list[dict[str, Any]]:
    """Every place the Tab key stops at, in order, and whether one can see that it did."""
    page.evaluate("document.activeElement?.blur()")
    stops = []
    for _ in range(most):
        page.keyboard.press("Tab")
        stop: dict[str, Any] = page.evaluate(_STOP)
        if stop["tag"] == "BODY" or (stops and stop["path"] == stops[0]["path"]):
            return stops
        stops.append(stop)
    raise AssertionError(f"more than {most} stops")


_STOP = """() => {
  const it = document.activeElement;
  const ring = it.classList.contains("reader") ? it.closest(".plot") : it;
  const style = getComputedStyle(ring);
  const path = [];
  for (let e = it; e.parentElement; e = e.parentElement) path.unshift([...e.parentElement.children].indexOf(e));
  return {
    tag: it.tagName, path: path.join("/"), text: (it.getAttribute("aria-label") ?? it.textContent).trim(),
    visible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
  };
}"""


def poor_contrasts(page: Page, least: float = 4.5) -> list[str]:
    """Texts with too little contrast to their background (WCAG AA requires 4.5)."""
    poor: list[str] = page.evaluate(_CONTRAST, least)
    return poor


_CONTRAST = """(least) => {
  const parse = (text) => {
    const numbers = text.match(/[\\d.]+/g).map(Number);
    return { rgb: numbers.slice(0, 3), alpha: numbers[3] ?? 1 };
  };
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ({ rgb }) => rgb.map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.alpha === 1) return colour;
    }
    return { rgb: [255, 255, 255], alpha: 1 };
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || ["SCRIPT", "STYLE", "title", "desc"].includes(e.tagName)) continue;
    const style = getComputedStyle(e);
    if (style.visibility === "hidden") continue;
    const ink = parse(e instanceof SVGElement ? style.fill : style.color);
    const [high, low] = [light(ink), light(behind(e))].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const name = `${e.tagName}.${e.getAttribute("class")}: ${e.textContent.slice(0, 40)}`;
    if (ratio < least) found.push(`${ratio.toFixed(2)} ${name}`);
  }
  return found;
}"""
