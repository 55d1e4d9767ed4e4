"""Format numbers for pages, findings and figures."""

from math import floor, inf, isfinite, isnan, log10, nan

SCALES = {
    "bit/s": ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s")),
    "bytes": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes")),
    "fraction": ((0.01, "%"),),
}  # by unit: factor and name of its prefixed units, largest first; other units are not scaled
WIDE = 10.0  # above this ratio of an interval's ends, rounding by its half width would lose the lower end


def decimals(value: float, low: float = nan, high: float = nan, digits: int = 3) -> int:
    """
    Return the number of decimal places that show two significant digits of the interval's half width or, without an
    interval, `digits` significant digits of the value.

    A negative number of places rounds to tens, hundreds and so on.

    >>> decimals(14.2371, 13.91, 14.55), decimals(14.2371), decimals(0.0)
    (2, 1, 0)
    """
    half = (high - low) / 2
    if isfinite(half) and half > 0:
        # At most four significant digits, however narrow the interval is: more digits would be those of the machine.
        places = 1 - floor(log10(half))
        finest = 3 - floor(log10(abs(value))) if value and isfinite(value) else places
        return min(places, max(finest, 0))
    size = next((abs(part) for part in (value, low, high) if isfinite(part) and part), None)
    return digits - 1 - floor(log10(size)) if size else 0


def number(value: float, places: int | None = None) -> str:
    """
    Format a number with commas between thousands; NaN becomes "unknown", and infinity "no limit".

    `places` is the number of decimal places; by default, numbers that are not whole have three significant digits.

    >>> number(2070), number(0.12345), number(1234.5, 0), number(1260, -2), number(-0.0001, 2)
    ('2,070', '0.123', '1,234', '1,300', '0.00')
    """
    value = float(value)
    if isnan(value):
        return "unknown"
    if not isfinite(value):
        return "no limit" if value > 0 else "minus no limit"
    if places is None:
        places = 0 if value == round(value) else max(decimals(value), 0)
    text = f"{round(value, places):,.{max(places, 0)}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0,.") else text


def scale(unit: str, value: float) -> tuple[float, str]:
    """
    Choose the prefixed unit in which a value in `unit` is short; return the factor to divide by, and the chosen unit.

    >>> scale("bit/s", 3.2e8), scale("fraction", 0.4), scale("ms", 1e6)
    ((1000000.0, 'Mbit/s'), (0.01, '%'), (1, 'ms'))
    """
    steps = SCALES.get(unit, ((1, unit),))
    size = abs(value) if isfinite(value) else 0.0
    return next((step for step in steps if size >= step[0]), steps[-1])


def quantity(value: float, unit: str = "", low: float = nan, high: float = nan) -> str:
    """
    Format a value with its unit, with as many digits as its interval justifies.

    >>> quantity(3.2e8, "bit/s"), quantity(14.2371, "ms", 13.9, 14.5), quantity(0.6634, "fraction")
    ('320 Mbit/s', '14.24 ms', '66.3 %')
    """
    return interval(value, low, high, unit)[0]


def interval(value: float, low: float, high: float, unit: str = "") -> tuple[str, str]:
    """
    Format a value, and its interval in the same unit and with the same number of decimal places, as two texts.

    If the ends differ by more than a factor of `WIDE`, each number has three significant digits, because the lower end
    would otherwise be rounded to 0. The second text shows only the finite end of an interval with an infinite end, and
    is "" if an end is NaN.

    >>> interval(14.2371, 13.912, 14.553, "ms per 1,000 km")
    ('14.24 ms per 1,000 km', '13.91 to 14.55')
    >>> interval(2500, 1800, float("inf"), "km"), interval(0.1618, 0.00179, 14.591, "times")
    (('2,500 km', 'at least 1,800'), ('0.162 times', '0.00179 to 14.6'))
    """
    factor, name = scale(unit, first_finite(value, low, high))
    places = places_of(value / factor, low / factor, high / factor)
    # Findings are stored with six significant digits, so rounding to six digits first gives the same text.
    value, low, high = (float(f"{end:.6g}") / factor for end in (value, low, high))
    text = number(value, places)
    return f"{text} {name}" if name and isfinite(value) else text, span(low, high, places)


def places_of(value: float, low: float, high: float) -> int | None:
    """
    Return the number of decimal places for a value and its interval; None if the interval's ends differ by more than a
    factor of `WIDE`.
    """
    wide = low > 0 and isfinite(high) and high > WIDE * low
    return None if wide else decimals(value, low, high)


def first_finite(*values: float) -> float:
    """Return the first value that is neither NaN nor infinite; 0 if there is none."""
    return next((value for value in values if isfinite(value)), 0.0)


def span(low: float, high: float, places: int | None = None) -> str:
    """
    Format an interval, such as "1.0 to 2.5"; return "" if an end is NaN or both are infinite.

    >>> span(1, 2.5, 1), span(1, float("inf"), 0), span(float("-inf"), 2, 0), span(float("nan"), 2, 0)
    ('1.0 to 2.5', 'at least 1', 'at most 2', '')
    """
    if isnan(low) or isnan(high) or (low == -inf and high == inf):
        return ""
    if high == inf:
        return f"at least {number(low, places)}"
    if low == -inf:
        return f"at most {number(high, places)}"
    return f"{number(low, places)} to {number(high, places)}"


def count(n: int, noun: str, plural: str | None = None) -> str:
    """
    Format a count with its noun; the plural is `plural`, by default the noun with an s.

    >>> count(1, "pair"), count(2070, "pair"), count(0, "echo", "echoes")
    ('1 pair', '2,070 pairs', '0 echoes')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def percent(level: float) -> str:
    """Format a confidence level, such as "99.5 %"."""
    return f"{round(100 * level, 6):g} %"


def p_value(p: float) -> str:
    """
    Format a p-value with two significant digits.

    >>> p_value(0.00871), p_value(0.5), p_value(1e-9)
    ('p = 0.0087', 'p = 0.50', 'p < 0.0001')
    """
    return f"p = {number(p, decimals(p, digits=2))}" if not p < 1e-4 else "p < 0.0001"


def rounded(value: float | None) -> float | None:
    """
    Round to six significant digits, so that JSON and CSV files of two runs can be compared; None for NaN and infinity.

    >>> rounded(14.23456789), rounded(float("inf")), rounded(None), rounded(7)
    (14.2346, None, None, 7.0)
    """
    return None if value is None or not isfinite(value) else float(f"{float(value):.6g}")


def duration(seconds: float) -> str:
    """
    Format a time in s, min or h, depending on its length.

    >>> duration(90), duration(600), duration(10_000)
    ('90 s', '10.0 min', '2.8 h')
    """
    size, unit = (1, "s") if seconds < 120 else (60, "min") if seconds < 7200 else (3600, "h")
    return f"{seconds / size:.{size > 1:d}f} {unit}"
