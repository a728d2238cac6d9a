"""How figures are written for people. What is not known is a dash."""

from __future__ import annotations

NONE = "–"
_THIN = "\u202f"  # narrow, and no line ends at it


def share(value: float | None) -> str:
    """A figure in percent, with its sign: `73.3 %`."""
    return NONE if value is None else f"{plain(value)}{_THIN}%"


def plain(value: float | None, decimals: int = 1) -> str:
    """`73.3`; never `-0.0`."""
    if value is None:
        return NONE
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if not float(text) else text.replace("-", "−")


def spread(value: float | None, deviation: float | None) -> str:
    """`73.3 ± 0.2`, or without the second where there was one run."""
    return plain(value) if value is None or deviation is None else f"{plain(value)} ± {plain(deviation)}"


def count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}".replace(",", _THIN)


def many(number: int, one: str, several: str | None = None) -> str:
    """`1 window`, `20 windows`."""
    return f"{count(number)} {one if number == 1 else several or one + 's'}"


def seconds(value: float) -> str:
    """`0.42 s`, `16 s`, `2 min 5 s`, `1 h 3 min`."""
    if value < 9.95:
        return f"{value:.2f}".rstrip("0").rstrip(".") + f"{_THIN}s"
    whole = round(value)
    if whole < 60:
        return f"{whole}{_THIN}s"
    if whole < 3600:
        return f"{whole // 60}{_THIN}min {whole % 60}{_THIN}s"
    return f"{whole // 3600}{_THIN}h {whole % 3600 // 60}{_THIN}min"


def significant(value: float) -> str:
    """A number of any size, with three digits that count."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", _THIN).replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def short(text: str, length: int = 18) -> str:
    """The text, or its beginning and end where it is longer than a label can be."""
    if len(text) <= length:
        return text
    head = (length - 1) * 2 // 3
    return f"{text[:head]}…{text[head - length + 1 :]}"
