"""
What the intervals of this package were found to cover, for the results that have to say so.

The numbers are those of the tables in data/validity, which `make validity` makes; a test keeps the two the same.
"""

from __future__ import annotations

from math import log

BAND = (93.0, 97.0)
"""What an interval at the level 95 % should cover, in per cent."""
MEASURED = {
    "slope": {8: (96.1, 99.0), 16: (96.0, 97.0), 46: (96.2, 97.3)},
    "RTT at no distance": {8: (94.3, 99.0), 16: (94.1, 99.0), 46: (94.3, 97.3)},
    "Pearson r": {8: (96.3, 98.3), 16: (94.4, 97.1), 46: (94.1, 96.5)},
    "half-distance": {8: (94.3, 98.7), 16: (95.7, 98.3), 46: (95.6, 97.3)},
    "window W": {8: (94.5, 98.0), 16: (95.1, 97.6), 46: (94.4, 97.4)},
}
"""
Lowest and highest coverage in per cent by quantity and number of regions, over effects of regions and of pairs, on
height and on slope, heavy tails of pairs, and missing pairs.
"""
HARDER = {
    "slope": {8: (74.0, 98.0), 16: (77.7, 98.0), 46: (85.0, 97.7)},
    "RTT at no distance": {8: (92.7, 98.3), 16: (85.3, 99.3), 46: (93.3, 97.7)},
    "Pearson r": {8: (65.3, 96.4), 16: (80.0, 96.1), 46: (87.4, 97.7)},
    "window W": {8: (92.0, 94.9), 16: (81.7, 95.7), 46: (84.0, 96.1)},
}
"""The same over skewed or heavy-tailed effects of regions, and over a tenth of the regions with detours."""
ALIKE = {
    "slope": {8: (93.0, 97.7), 16: (94.7, 97.7), 46: (85.7, 92.0)},
    "RTT at no distance": {8: (94.3, 98.7), 16: (90.7, 96.7), 46: (73.7, 92.0)},
}
"""The same over effects that places share with their neighbours, over 1,500 km."""
FEW_BEYOND = {
    "window W": {8: (95.0, 95.0), 16: (96.0, 96.0), 46: (86.7, 86.7)},
}
"""The same where 5 to 10 of 100 pairs lie beyond the knee."""
FEW = 16


def caution(quantity: str, n_units: int, skew=None) -> tuple[str, ...]:
    """
    What to say of an interval, if surveys simulated with so many units say that it does not cover as it should.

    Judged by the greatest simulated number of regions that is not above `n_units`, else by the least. That an
    interval is too wide is said of few units only. Where the effects of places are skewed (`skew.Skew`), surveys
    simulated with such effects are what counts.
    """
    found = ()
    size, (low, high) = _at(MEASURED[quantity], n_units)
    if low < BAND[0] or (high > BAND[1] and n_units < FEW):
        found = (
            f"the 95 % interval of {quantity} is not exact: in simulated surveys of {size} regions it covers in "
            f"{low:.1f} to {high:.1f} of 100",
        )
    if skew is not None and skew.found and quantity in HARDER:
        size, (low, high) = _at(HARDER[quantity], n_units)
        if low < BAND[0]:
            found += (
                f"{skew}: in simulated surveys of {size} regions with such effects the 95 % interval of {quantity} "
                f"covers in {low:.1f} to {high:.1f} of 100",
            )
    return found


def harder(quantity: str, n_units: int) -> str:
    """What would break an interval, with what simulation says; "" where skewed effects do not."""
    size, (low, high) = _at(HARDER.get(quantity, {n_units: BAND}), n_units)
    if low >= BAND[0]:
        return ""
    return (
        ". So would skewed or heavy-tailed effects of regions, or a few regions with detours: simulated with "
        f"{size} regions, it then covers in {low:.1f} to {high:.1f} of 100, and a survey without such a region shows "
        "no sign of it"
    )


def few_beyond(n_units: int) -> str:
    """What the interval of W covers with few pairs beyond the knee."""
    size, (low, _) = _at(FEW_BEYOND["window W"], n_units)
    return f"with {size} regions its 95 % interval covers in {low:.1f} of 100"


def alike(quantity: str, n_regions: int) -> str:
    """
    What an interval covers where places near each other deviate alike; "" where that was not simulated.

    The more regions there are, the less it covers, so the simulated number nearest to theirs speaks for them.
    """
    if quantity not in ALIKE:
        return ""
    size = min(ALIKE[quantity], key=lambda n: abs(log(n / n_regions)))
    low, high = ALIKE[quantity][size]
    return f": in simulated surveys of {size} regions that do it covers in {low:.1f} to {high:.1f} of 100"


def _at(sizes: dict[int, tuple[float, float]], n_units: int) -> tuple[int, tuple[float, float]]:
    """The simulated number of regions that speaks for so many units, and its range."""
    size = max((n for n in sizes if n <= n_units), default=min(sizes))
    return size, sizes[size]
