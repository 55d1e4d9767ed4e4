"""
Warn if intervals cover the true value too rarely or too often in simulated surveys.

`make validity` computes the coverages below and writes them to data/validity; a test checks that both agree. A
coverage is a pair: the lowest and the highest over the simulated conditions, in per cent.
"""

from math import log

from wanbench.formatting import count, number, span

from .places import Skew

BAND = (93.0, 97.0)  # Coverage in per cent that is close enough to 95 %
# Lowest and highest coverage in per cent by quantity and number of regions, over surveys with effects of regions and of
# pairs, on height and on slope, heavy tails of pairs, and missing pairs
COVERAGE = {
    "slope": {8: (96.1, 99.0), 16: (96.0, 97.0), 46: (96.2, 97.3)},
    "RTT intercept": {8: (94.3, 99.0), 16: (94.1, 99.0), 46: (94.3, 97.3)},
    "Pearson r": {8: (96.3, 98.3), 16: (94.4, 97.1), 46: (94.1, 96.5)},
    "half-distance": {8: (94.3, 98.7), 16: (95.7, 98.3), 46: (95.6, 97.3)},
    "window W": {8: (94.5, 98.0), 16: (95.1, 97.6), 46: (94.4, 97.4)},
}
# The same with skewed or heavy-tailed effects of regions, or with detours of a tenth of the regions
SKEWED_COVERAGE = {
    "slope": {8: (59.3, 98.3), 16: (76.7, 99.3), 46: (85.0, 97.7)},
    "RTT intercept": {8: (78.7, 98.3), 16: (79.3, 99.3), 46: (93.0, 98.3)},
    "Pearson r": {8: (57.0, 96.4), 16: (80.0, 96.1), 46: (87.4, 99.3)},
    "window W": {8: (90.0, 94.9), 16: (78.3, 95.7), 46: (74.3, 96.1)},
}
# The same with effects that are correlated between neighbouring places, over 1,500 or 5,000 km
CORRELATED_COVERAGE = {
    "slope": {8: (86.6, 97.7), 16: (84.0, 97.7), 46: (60.3, 92.0)},
    "RTT intercept": {8: (87.6, 98.7), 16: (72.0, 96.7), 46: (55.0, 92.0)},
    "half-distance": {8: (87.6, 97.7), 16: (82.7, 95.3), 46: (59.0, 88.0)},
    "window W": {8: (87.2, 93.0), 16: (69.0, 89.7), 46: (47.7, 75.7)},
}
# The same with 0 to 10 % of the pairs beyond the knee
FEW_BEYOND_COVERAGE = {"window W": {8: (87.0, 95.0), 16: (85.3, 96.0), 46: (63.7, 86.7)}}
FEW_REGIONS = 16  # With this many regions or more, an interval that is too wide needs no caution


def caution(quantity: str, n_units: int, skew: Skew | None = None) -> tuple[str, ...]:
    """
    Return warnings if an interval's simulated coverage is outside `BAND`, or below it with skewed effects of regions.

    The coverage is that of the largest simulated survey with at most `n_units` regions, or else of the smallest one. A
    coverage above the band (the interval is too wide) is reported for fewer than 16 units only.

    quantity: A key of `COVERAGE`.
    n_units: Number of independent units (places).
    skew: The test for skewed effects. If it is significant, simulations with skewed effects are used, too.
    """
    cautions = ()
    size, (low, high) = _simulated(COVERAGE[quantity], n_units)
    if low < BAND[0] or (high > BAND[1] and n_units < FEW_REGIONS):
        cautions = (f"{_interval(quantity)} is not exact: it {_covers(size, low, high)}",)
    if skew is not None and skew.significant and quantity in SKEWED_COVERAGE:
        size, (low, high) = _simulated(SKEWED_COVERAGE[quantity], n_units)
        if low < BAND[0]:
            cautions += (f"{skew}: {_interval(quantity)} {_covers(size, low, high)} with such effects",)
    return cautions


def lower_coverage(quantity: str, n_units: int) -> str:
    """Return text to append to an assumption: which conditions lower the coverage, and how far; "" if none does."""
    conditions = {
        "effects shared over 1,500 km or more": _nearest(CORRELATED_COVERAGE.get(quantity), n_units),
        "skewed or heavy-tailed effects of regions, or detours of a few regions": _simulated(
            SKEWED_COVERAGE.get(quantity), n_units
        ),
        "too few pairs beyond the knee": _simulated(FEW_BEYOND_COVERAGE.get(quantity), n_units),
    }
    parts = [
        f"{what} (the 95 % interval then {_covers(size, *ends)})"
        for what, (size, ends) in conditions.items()
        if ends[0] < BAND[0]
    ]
    return f". So would {'; '.join(parts)}; the survey itself may not show this" if parts else ""


def coverage_with_few_beyond(n_units: int) -> str:
    """Return, as text, the coverage of the interval of W (`window_fit`) if few pairs lie beyond the knee."""
    size, ends = _simulated(FEW_BEYOND_COVERAGE["window W"], n_units)
    return f"its 95 % interval {_covers(size, *ends)}"


def caution_if_correlated(quantity: str, n_regions: int) -> tuple[str, ...]:
    """
    Warn that the coverage is low where effects of nearby places are correlated; () if the coverage simulated with such
    effects reaches the band, or was not simulated.
    """
    size, ends = _nearest(CORRELATED_COVERAGE.get(quantity), n_regions)
    if ends[0] >= BAND[0]:
        return ()
    covers = _covers(size, *ends)
    return (f"where effects of nearby places are correlated, {_interval(quantity)} {covers}",)


def _interval(quantity: str) -> str:
    return f"the 95 % interval of {'' if quantity == 'Pearson r' else 'the '}{quantity}"


def _covers(size: int, low: float, high: float) -> str:
    """
    Return a range of coverage in per cent as text.

    >>> _covers(16, 81.7, 95.7)
    'contains the true value in 81.7 to 95.7 % of simulated surveys of 16 regions'
    """
    per_cent = span(low, high, 1) if low < high else number(low, 1)
    return f"contains the true value in {per_cent} % of simulated surveys of {count(size, 'region')}"


def _simulated(sizes: dict[int, tuple[float, float]] | None, n_units: int) -> tuple[int, tuple[float, float]]:
    """
    Return the size of the simulated survey that applies to `n_units`, and its coverage in % (low, high).

    sizes: Coverage by number of regions; None if not simulated, in which case the band is taken as the coverage.
    """
    sizes = sizes or {n_units: BAND}
    size = max((n for n in sizes if n <= n_units), default=min(sizes))
    return size, sizes[size]


def _nearest(sizes: dict[int, tuple[float, float]] | None, n_regions: int) -> tuple[int, tuple[float, float]]:
    """
    Return what `_simulated` does, but for the nearest number of regions. Used where the coverage falls as the number of
    regions grows.
    """
    sizes = sizes or {n_regions: BAND}
    size = min(sizes, key=lambda n: abs(log(n / n_regions)))
    return size, sizes[size]
