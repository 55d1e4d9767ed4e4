"""Check round-trip times against the minimum, mean and maximum in ping's footer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from wanbench.errors import RawDataError
from wanbench.read.ingest.content import File

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
                digits = low, middle, high = [line[place] for place in places]
                decimals = max(len(figure.partition(".")[2]) for figure in digits)
                return cls(line_number, text, float(low), float(middle), float(high), 10.0**-decimals)
        return None


@dataclass(slots=True)
class Tally:
    """Number, sum, minimum and maximum of times."""

    n: int = 0
    sum_ms: float = 0.0
    min_ms: float = inf
    max_ms: float = -inf

    def add(self, times_ms: list[float] | np.ndarray) -> None:
        """Add an array of times in ms."""
        times_ms = np.asarray(times_ms)
        if len(times_ms):
            self.n += len(times_ms)
            self.sum_ms += float(times_ms.sum())
            self.min_ms = min(self.min_ms, float(times_ms.min()))
            self.max_ms = max(self.max_ms, float(times_ms.max()))

    def check(self, path: File, times: Times | None) -> None:
        """Raise RawDataError if the footer's minimum, mean or maximum differs from this tally by more than rounding."""
        if times is None or not self.n:
            return
        units_ms = [next(unit for from_ms, unit in _UNITS_MS if ms >= from_ms) for ms in (self.min_ms, self.max_ms)]
        allowed_ms = [unit_ms + 1.001 * times.unit_ms for unit_ms in units_ms]
        mean_ms = self.sum_ms / self.n
        if (
            abs(self.min_ms - times.min_ms) > allowed_ms[0]
            or abs(self.max_ms - times.max_ms) > allowed_ms[1]
            or abs(mean_ms - times.mean_ms) > allowed_ms[1]
        ):
            shown = f"minimum {self.min_ms:g}, mean {mean_ms:.6g}, maximum {self.max_ms:g}"
            expected = f"times that fit the lines: {shown} ms of {self.n:,} replies"
            raise RawDataError(path, times.line_number, times.text, expected)
