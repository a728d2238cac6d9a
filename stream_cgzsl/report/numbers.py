"""Numbers as text for people. An unknown one is a dash."""

from __future__ import annotations

MISSING = "–"
_THIN = "\u202f"  # a narrow no-break space


def percentage(value: float | None) -> str:
    """`73.3 %`, given 73.3."""
    return MISSING if value is None else f"{decimal(value)}{_THIN}%"


def decimal(value: float | None, decimals: int = 1) -> str:
    """`73.3`; never `-0.0`."""
    if value is None:
        return MISSING
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if not float(text) else text.replace("-", "−")


def plus_minus(value: float | None, deviation: float | None) -> str:
    """`73.3 ± 0.2`; `73.3` without a deviation."""
    return decimal(value) if value is None or deviation is None else f"{decimal(value)} ± {decimal(deviation)}"


def count(value: int | None) -> str:
    return MISSING if value is None else f"{value:,}".replace(",", _THIN)


def plural(number: int, one: str, several: str | None = None) -> str:
    """`1 window`, `20 windows`."""
    return f"{count(number)} {one if number == 1 else several or one + 's'}"


def duration(value: float) -> str:
    """`0.42 s`, `16 s`, `2 min 5 s`, `1 h 3 min`."""
    if value < 9.95:
        return f"{value:.2f}".rstrip("0").rstrip(".") + f"{_THIN}s"
    whole = round(value)
    if whole < 60:
        return f"{whole}{_THIN}s"
    if whole < 3600:
        return f"{whole // 60}{_THIN}min {whole % 60}{_THIN}s"
    return f"{whole // 3600}{_THIN}h {whole % 3600 // 60}{_THIN}min"


def significant(value: float | None) -> str:
    """A number of any size, with three significant digits."""
    if not value:
        return MISSING if value is None else "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", _THIN).replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def shorten(text: str, length: int = 18) -> str:
    """The text, or its beginning and end if it is too long for a label."""
    if len(text) <= length:
        return text
    head = (length - 1) * 2 // 3
    return f"{text[:head]}…{text[head - length + 1 :]}"
