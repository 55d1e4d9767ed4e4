"""
Check round-trip times against ping's footer.

iputils s20180629 prints 60.96 ms as "60.10" and 1.996 ms as "1.100", because it rounds the decimals without a carry. No
other version of iputils prints two decimals for times from 10 ms, or three for times from 1 ms. The footer, which ping
computes from microseconds, shows which value is right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from wanbench.errors import RawDataError

WITHOUT_CARRY = re.compile(r"[1-9][0-9]\.10|[1-9]\.100")
CARRY_MS = 0.9
"""Difference that the missing carry makes: 61.0 is printed as 60.10, and 2.00 as 1.100."""

_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,6})?)"
_LINES = (
    # (pattern of the line, its groups with minimum, mean and maximum)
    (re.compile(rf"(?:rtt|round-trip) min/avg/max(?:/[a-z-]+)? = {_NUMBER}/{_NUMBER}/{_NUMBER}[/ ].*"), (1, 2, 3)),
    (re.compile(rf" *Minimum = {_NUMBER}ms, Maximum = {_NUMBER}ms, Average = {_NUMBER}ms ?"), (1, 3, 2)),
)
_UNITS_MS = ((99.5, 1.0), (9.95, 0.1), (0.995, 0.01), (0.0, 0.001))
"""Pairs of an RTT and the resolution of iputils' RTTs from this RTT on, in ms. Other tools print more decimals."""


class Times(NamedTuple):
    """Minimum, mean and maximum RTT in ping's footer, their resolution `unit_ms`, and their line."""

    line_number: int
    text: str
    min_ms: float
    mean_ms: float
    max_ms: float
    unit_ms: float

    @classmethod
    def of(cls, line_number: int, text: str) -> Times | None:
        """
        Return the times in a line; None if it has none.

        >>> Times.of(9, "rtt min/avg/max/mdev = 60.961/61.5/62/0.4 ms")[2:]
        (60.961, 61.5, 62.0, 0.001)
        """
        for pattern, places in _LINES:
            if line := pattern.fullmatch(text):
                digits = [line[place] for place in places]
                decimals = max(len(figure.partition(".")[2]) for figure in digits)
                return cls(line_number, text, *map(float, digits), 10.0**-decimals)
        return None


@dataclass(slots=True)
class Tally:
    """Number, sum, minimum and maximum of times."""

    n: int = 0
    sum_ms: float = 0.0
    min_ms: float = inf
    max_ms: float = -inf

    def add(self, times_ms) -> None:
        """Add these times."""
        times_ms = np.asarray(times_ms)
        if len(times_ms):
            self.n += len(times_ms)
            self.sum_ms += float(times_ms.sum())
            self.min_ms = min(self.min_ms, float(times_ms.min()))
            self.max_ms = max(self.max_ms, float(times_ms.max()))

    def joined(self, other: Tally, more_ms: float = 0.0) -> Tally:
        """Combine this tally with another, after adding `more_ms` to each time of the other."""
        return Tally(
            self.n + other.n,
            self.sum_ms + other.sum_ms + other.n * more_ms,
            min(self.min_ms, other.min_ms + more_ms),
            max(self.max_ms, other.max_ms + more_ms),
        )

    def mean_error_ms(self, times: Times) -> float:
        """Return the difference between this tally's mean and the footer's mean."""
        return abs(self.sum_ms / self.n - times.mean_ms)

    def fits(self, times: Times) -> bool:
        """Return whether the footer's times match this tally within rounding."""
        allowed = [_unit_ms(value) + 1.001 * times.unit_ms for value in (self.min_ms, self.max_ms)]
        return (
            abs(self.min_ms - times.min_ms) <= allowed[0]
            and abs(self.max_ms - times.max_ms) <= allowed[1]
            and self.mean_error_ms(times) <= allowed[1]
        )


def lack_carry(path, times: Times | None, exact: Tally, doubtful: Tally) -> bool | None:
    """
    Return whether the doubtful times of a ping lack their carry; None if the footer is inconclusive.

    Raise RawDataError if the footer fits the times neither with nor without the carry.
    """
    if times is None or not exact.n + doubtful.n:
        return None
    printed = exact.joined(doubtful)
    fits = printed.fits(times)
    if fits and not doubtful.n:
        return None
    carry = exact.joined(doubtful, CARRY_MS)
    if carry.fits(times) and not fits:
        return True
    if not fits:
        shown = f"minimum {printed.min_ms:g}, mean {printed.sum_ms / printed.n:.6g}, maximum {printed.max_ms:g}"
        expected = f"times that fit the lines: {shown} ms of {printed.n:,} replies"
        raise RawDataError(path, times.line_number, times.text, expected)
    if not carry.fits(times):
        return False
    return True if carry.mean_error_ms(times) < printed.mean_error_ms(times) else None


def _unit_ms(time_ms: float) -> float:
    return next(unit for from_ms, unit in _UNITS_MS if time_ms >= from_ms)
