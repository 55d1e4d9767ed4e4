"""Times as people write them in tables: "67 ms", "67,3", "1 204.5", "N/A". Imports `errors`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import ParameterError

MISSING = (
    "",
    "-",
    "--",
    "–",
    "—",
    "n/a",
    "na",
    "n.a.",
    "nan",
    "null",
    "none",
    "x",
    "*",
    "?",
    ".",
    "...",
    "…",
)
UNITS = {
    "ms": 1.0, "msec": 1.0, "msecs": 1.0, "millisecond": 1.0, "milliseconds": 1.0,
    "s": 1e3, "sec": 1e3, "secs": 1e3, "second": 1e3, "seconds": 1e3,
    "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "microsecond": 1e-3, "microseconds": 1e-3,
}  # fmt: skip
"""Milliseconds per unit, as units are written."""
STATISTICS = {
    "min": "min_rtt_ms", "minimum": "min_rtt_ms",
    "mean": "mean_rtt_ms", "average": "mean_rtt_ms", "avg": "mean_rtt_ms",
    "median": "median_rtt_ms", "p50": "median_rtt_ms",
    "max": "max_rtt_ms", "maximum": "max_rtt_ms",
    "p90": "p90_rtt_ms", "p95": "p95_rtt_ms", "p99": "p99_rtt_ms",
}  # fmt: skip
"""The column of table pings that holds each statistic."""

_THIN = " \u00a0\u2009\u202f'’"
_NUMBERS = {
    ".": re.compile(rf"(?:[0-9]{{1,3}}(?:[,{_THIN}][0-9]{{3}})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"),
    ",": re.compile(rf"(?:[0-9]{{1,3}}(?:[.{_THIN}][0-9]{{3}})+|[0-9]+)(?:,[0-9]+)?|,[0-9]+"),
}
_EITHER = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
_CELL = re.compile(r"(?P<number>[0-9.,].*?)\s*(?P<unit>[a-zµμ]*)", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"[a-zµμ]+[0-9]*", re.IGNORECASE)
_BRACKETED = re.compile(r"[(\[]\s*(?:in\s+)?([a-zµμ]+)\s*[)\]]|\bin\s+([a-zµμ]+)\b", re.IGNORECASE)
_ONE_WAY = re.compile(r"\bone[ -]way\b", re.IGNORECASE)
_TIME = re.compile(r"\b(latency|latencies|rtts?|ping|round[ -]trips?|ms|msec|milliseconds)\b", re.IGNORECASE)
_OTHER = re.compile(
    r"\b(throughput|bandwidth|bitrate|jitter|loss|distances?|km|miles|hops|prices?|costs?|usd|"
    r"[kmgt]?bps|[kmgt]?i?b(?:it|its|yte|ytes)?/s)\b|[%$€]",
    re.IGNORECASE,
)
LONGEST = 40
GREATEST_MS = 1e7


def decimal_mark(texts: Iterable[str], comma_likely: bool = False) -> str | None:
    """
    What separates the decimals in these texts: "." or ","; None if they leave it open what "1,234" is.

    `comma_likely` decides where nothing else does, as in a file whose columns are separated by semicolons.

    >>> decimal_mark(["67,3", "104"]), decimal_mark(["67.3", "1,204"]), decimal_mark(["1,204"])
    (',', '.', None)
    """
    seen, open_comma = set(), False
    for text in texts:
        cell = _CELL.fullmatch(text.strip()) if len(text) <= LONGEST else None
        if cell is None:
            continue
        number = cell["number"]
        fits = {mark for mark, pattern in _NUMBERS.items() if pattern.fullmatch(number)}
        if _EITHER.fullmatch(number):
            open_comma |= "," in number
        elif len(fits) == 1 and ("." in number or "," in number):
            seen |= fits
        elif "0." in number[:2] or "0," in number[:2]:
            seen.add(number[1])
    if len(seen) == 1:
        return seen.pop()
    if seen or open_comma:
        return "," if comma_likely and "." not in seen else None
    return "."


def milliseconds(text: str, unit: str, decimal: str | None) -> float | None:
    """
    The time that a cell gives, in ms; None if it says that there is none.

    Parameters
    ----------
    text : str
        A number, digits of thousands apart or not, and perhaps its own unit.
    unit : str
        A key of `UNITS`, for a number without its own.
    decimal : "." or "," or None
        As `decimal_mark` told; None refuses what could be either.

    Raises
    ------
    ValueError
        If it is no time; the text says what was expected.

    Examples
    --------
    >>> milliseconds("67.3", "ms", "."), milliseconds("1 204,5 ms", "s", ","), milliseconds("N/A", "ms", ".")
    (67.3, 1204.5, None)
    """
    text = text.strip()
    if text.lower() in MISSING:
        return None
    cell = _CELL.fullmatch(text) if len(text) <= LONGEST else None
    own = cell["unit"].lower() if cell else ""
    if cell is None or (own and own not in UNITS):
        raise ValueError("a time, as 67.3 or 67.3 ms")
    number = cell["number"]
    marks = [mark for mark in _NUMBERS if decimal in (None, mark) and _NUMBERS[mark].fullmatch(number)]
    if not marks:
        raise ValueError("a time, as 67.3 or 67.3 ms" if decimal != "," else "a time, as 67,3 or 67,3 ms")
    values = {_plain(number, mark) for mark in marks}
    if len(values) > 1:
        raise ValueError("a time whose decimal mark can be told (say decimal='.' or decimal=',')")
    value = values.pop() * UNITS[own or unit]
    if not value < GREATEST_MS:
        raise ValueError(f"a time under {GREATEST_MS:,.0f} ms")
    return value


def _plain(number, mark):
    whole, _, part = number.partition(mark)
    return float(re.sub(r"[^0-9]", "", whole) + "." + part + "0")


def said_unit(text: str) -> str | None:
    """
    The unit of time that a caption names in brackets or after "in"; None if it names none, or several.

    >>> said_unit("Average latency (ms)"), said_unit("RTT in microseconds"), said_unit("Source")
    ('ms', 'microseconds', None)
    """
    found = {
        word.lower() for pair in _BRACKETED.findall(text[:1000]) for word in pair if word.lower() in UNITS
    }
    return found.pop() if len({UNITS[word] for word in found}) == 1 else None


def said_statistic(text: str) -> str | None:
    """
    The statistic that a caption names, as a column of table pings; None if it names none, or several.

    >>> said_statistic("Average latency (ms)"), said_statistic("P50 RTT"), said_statistic("Source")
    ('mean_rtt_ms', 'median_rtt_ms', None)
    """
    found = {STATISTICS[word] for word in map(str.lower, _WORD.findall(text[:1000])) if word in STATISTICS}
    return found.pop() if len(found) == 1 else None


def other_quantity(text: str) -> str | None:
    """
    What a caption says that a table holds instead of round-trip times; None if it says nothing of the kind.

    >>> other_quantity("Throughput (Gbit/s)"), other_quantity("One-way delay"), other_quantity("Latency and jitter")
    ('Throughput', 'One-way', None)
    """
    text = text[:1000]
    if match := _ONE_WAY.search(text):
        return match[0]
    match = _OTHER.search(text)
    return match[0] if match and not _TIME.search(text) else None


def check_settings(statistic: str | None, unit: str | None, decimal: str | None) -> None:
    """ParameterError for a statistic, unit or decimal mark that is not known."""
    for name, value, allowed in (
        ("statistic", statistic, STATISTICS),
        ("unit", unit, UNITS),
        ("decimal", decimal, _NUMBERS),
    ):
        if value is not None and (not isinstance(value, str) or value not in allowed):
            raise ParameterError(f"{name} is {value!r}; allowed: {', '.join(map(repr, allowed))}")
