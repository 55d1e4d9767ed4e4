"""Read times as people write them in tables: "67 ms", "67,3", "1 204.5", "N/A"."""

import re

# Texts of cells without a measurement, in lower case.
MISSING = (
    "", "-", "--", "–", "—", "n/a", "na", "n.a.", "nan", "null", "none", "x", "*", "?", ".", "...", "…",
)  # fmt: skip
# Milliseconds per unit, by the ways to write the unit.
UNITS = {
    "ms": 1.0, "msec": 1.0, "msecs": 1.0, "millisecond": 1.0, "milliseconds": 1.0,
    "s": 1e3, "sec": 1e3, "secs": 1e3, "second": 1e3, "seconds": 1e3,
    "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "microsecond": 1e-3, "microseconds": 1e-3,
}  # fmt: skip
# Columns of table pings, by the ways to write their statistics.
STATISTICS = {
    "min": "min_rtt_ms", "minimum": "min_rtt_ms",
    "mean": "mean_rtt_ms", "average": "mean_rtt_ms", "avg": "mean_rtt_ms",
    "median": "median_rtt_ms", "p50": "median_rtt_ms",
    "max": "max_rtt_ms", "maximum": "max_rtt_ms",
    "p90": "p90_rtt_ms", "p95": "p95_rtt_ms", "p99": "p99_rtt_ms",
}  # fmt: skip

_THIN = " \u00a0\u2009\u202f'’"
# Numbers by decimal mark; without a stated one, a comma is refused, as it can also separate thousands.
_NUMBERS = {
    None: re.compile(rf"(?:[0-9]{{1,3}}(?:[{_THIN}][0-9]{{3}})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"),
    ".": re.compile(rf"(?:[0-9]{{1,3}}(?:[,{_THIN}][0-9]{{3}})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"),
    ",": re.compile(rf"(?:[0-9]{{1,3}}(?:[.{_THIN}][0-9]{{3}})+|[0-9]+)(?:,[0-9]+)?|,[0-9]+"),
}
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
MAX_LENGTH = 40  # Maximum length of a number with its unit; limits the time for pattern matching.
MAX_MS = 1e7  # Almost three hours: no RTT is that long.
MAX_CAPTION = 1000  # Only so many characters of a caption are read.


def milliseconds(text: str, unit: str, decimal: str | None) -> float | None:
    """
    Return the time in a cell in ms, or None if the cell marks a missing value.

    The number may have thousands separators and a unit; without one, `unit` (a key of `UNITS`) is used. `decimal` is
    the decimal mark, "." or ","; if it is None, a number with a comma is refused, because 1,204 can mean 1.204 or 1204.
    Raise ValueError, which says what was expected, for any other text.

    >>> milliseconds("67.3", "ms", "."), milliseconds("1 204,5 ms", "s", ","), milliseconds("N/A", "ms", ".")
    (67.3, 1204.5, None)
    """
    text = text.strip()
    if text.lower() in MISSING:
        return None
    cell = _CELL.fullmatch(text) if len(text) <= MAX_LENGTH else None
    own = cell["unit"].lower() if cell else ""
    if cell is None or (own and own not in UNITS):
        raise ValueError("a time, such as 67.3 or 67.3 ms")
    number = cell["number"]
    if decimal is None and "," in number:
        raise ValueError("a time without a comma (or the parameter decimal='.' or decimal=',')")
    if not _NUMBERS[decimal].fullmatch(number):
        raise ValueError("a time, such as 67.3 or 67.3 ms" if decimal != "," else "a time, such as 67,3 or 67,3 ms")
    whole, _, part = number.partition(decimal or ".")
    value = float(re.sub(r"[^0-9]", "", whole) + "." + part + "0") * UNITS[own or unit]
    if not value < MAX_MS:
        raise ValueError(f"a time under {MAX_MS:,.0f} ms")
    return value


def stated_unit(text: str) -> str | None:
    """
    Return the unit of time that a caption names in brackets or after "in"; None if it names none or several.

    >>> stated_unit("Average latency (ms)"), stated_unit("RTT in microseconds"), stated_unit("Source")
    ('ms', 'microseconds', None)
    """
    words = {word.lower() for pair in _BRACKETED.findall(text[:MAX_CAPTION]) for word in pair}
    units = words & set(UNITS)
    return units.pop() if len({UNITS[unit] for unit in units}) == 1 else None


def stated_statistic(text: str) -> str | None:
    """
    Return the column of table pings whose statistic a caption names; None if it names none or several.

    >>> stated_statistic("Average latency (ms)"), stated_statistic("P50 RTT"), stated_statistic("Source")
    ('mean_rtt_ms', 'median_rtt_ms', None)
    """
    words = map(str.lower, _WORD.findall(text[:MAX_CAPTION]))
    columns = {STATISTICS[word] for word in words if word in STATISTICS}
    return columns.pop() if len(columns) == 1 else None


def other_quantity(text: str) -> str | None:
    """
    Return the word of a caption that names a quantity other than round-trip time; None if there is none.

    >>> other_quantity("Throughput (Gbit/s)"), other_quantity("One-way delay"), other_quantity("Latency and jitter")
    ('Throughput', 'One-way', None)
    """
    text = text[:MAX_CAPTION]
    if match := _ONE_WAY.search(text):
        return match[0]
    match = _OTHER.search(text)
    return match[0] if match and not _TIME.search(text) else None
