"""How many records it takes to know a quantile this closely, by a pilot measurement."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, isfinite, sqrt

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, number, percent
from . import order_statistics as order
from .distribution import FEWEST_BURSTS, Tail
from .exceedances import equal_bursts

MOST = 1e9
PRECISION = 1.01


@dataclass(frozen=True)
class TailPlan:
    """
    What an interval of a quantile takes.

    Attributes
    ----------
    effective_n : int
        Independent records.
    records : int
        Records that cluster as the pilot's do.
    times : float
        As many times the pilot: its records, minutes or runs. It holds enough bursts, too, if the pilot has some.
    """

    quantile: float
    width_ms: float
    level: float
    effective_n: int
    records: int
    times: float
    pilot: str

    def __str__(self) -> str:
        return (
            f"A {percent(self.level)} interval of {order.name(self.quantile)} no wider than {number(self.width_ms)} ms "
            f"takes {count(self.effective_n, 'independent record')}, or {count(self.records, 'record')} that cluster "
            f"as those of {self.pilot} do: {number(self.times)} times as many as it has."
        )

    __repr__ = __str__


def plan_tail(pilot: Tail, q: float, width_ms: float, *, level: float = 0.95) -> TailPlan:
    """
    How long to measure for an interval of a quantile that is no wider than asked.

    The interval is the one by order statistics that the pilot's distribution gives in the middle; an actual one is
    wider or narrower. It cannot be wider than the slowest record of the pilot allows, so let that see the tail.

    Raises
    ------
    ParameterError
        If the width is not positive, or too small for any number of records up to a thousand million.

    Examples
    --------
    >>> import numpy as np
    >>> from wanbench.stats import tails
    >>> pilot = tails.of_values([np.random.default_rng(0).exponential(20, 50_000)], "the pilot")
    >>> plan = plan_tail(pilot, 0.99, 4.0)
    >>> 25_000 < plan.effective_n < 50_000
    True
    """
    q, level = order.check_quantile(q), check_level(level)
    if isinstance(width_ms, bool) or not isinstance(width_ms, int | float) or not 0 < width_ms < inf:
        raise ParameterError(f"width_ms is {width_ms!r}; allowed is a positive number of ms")
    few, n = 0.0, float(order.fewest(q, level))
    while _width(pilot, q, level, n) > width_ms:
        few, n = n, 2 * n
        if n > MOST:
            raise ParameterError(
                f"{order.name(q)} of {pilot.name}: no interval is as narrow as {width_ms:g} ms; its values are "
                f"{number(_width(pilot, q, level, MOST))} ms apart there"
            )
    while few and n / few > PRECISION:
        middle = sqrt(few * n)
        few, n = (middle, n) if _width(pilot, q, level, middle) > width_ms else (few, middle)
    records = n * pilot.n / pilot.effective_n(q, level)
    bursts = equal_bursts(pilot.bursts(q))
    if 0 < bursts < FEWEST_BURSTS:
        records = max(records, pilot.n * FEWEST_BURSTS / bursts)
    return TailPlan(q, width_ms, level, ceil(n), ceil(records), records / pilot.n, pilot.name)


def _width(pilot: Tail, q: float, level: float, n: float) -> float:
    """Between the latencies at which the interval of n independent records ends, in the middle."""
    low, high = (order.position(n, q, part) / (n + 1) for part in ((1 + level) / 2, (1 - level) / 2))
    ends = pilot.quantile(low), pilot.quantile(high)
    return ends[1] - ends[0] + 2 * pilot.resolution_ms if all(map(isfinite, ends)) else inf
