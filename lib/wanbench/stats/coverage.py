"""
What the intervals of this package were found to cover, for the results that have to say so.

The numbers are those of the tables in data/validity, which `make validity` makes; a test keeps the two the same.
"""

from __future__ import annotations

BAND = (93.0, 97.0)
"""What an interval at the level 95 % should cover, in per cent."""
MEASURED = {
    "slope": {8: (96.1, 97.7), 16: (96.0, 97.0), 46: (96.2, 96.8)},
    "RTT at no distance": {8: (94.3, 97.9), 16: (94.1, 97.9), 46: (94.3, 96.9)},
    "Pearson r": {8: (96.3, 98.3), 16: (94.4, 97.1), 46: (94.1, 96.5)},
    "half-distance": {8: (96.6, 97.9), 16: (95.7, 97.5), 46: (95.6, 96.6)},
    "window W": {8: (94.5, 98.0), 16: (95.1, 97.6), 46: (94.4, 97.4)},
}
"""
Lowest and highest coverage in per cent by quantity and number of regions, over effects of regions and of pairs, on
height and on slope, heavy tails of pairs, and missing pairs.
"""
HARDER = {
    "slope": (93.1, 97.7),
    "RTT at no distance": (93.4, 98.3),
    "Pearson r": (87.4, 96.4),
    "window W": (92.3, 96.1),
}
"""The same over skewed or heavy-tailed effects of regions, any number of regions."""
FEW = 16


def caution(quantity: str, n_regions: int) -> tuple[str, ...]:
    """
    What to say of an interval, if surveys simulated with so many regions say that it does not cover as it should.

    Judged by the greatest simulated number of regions that is not above `n_regions`, else by the least. That an
    interval is too wide is said of few regions only.
    """
    sizes = MEASURED[quantity]
    size = max((n for n in sizes if n <= n_regions), default=min(sizes))
    low, high = sizes[size]
    if BAND[0] <= low and (high <= BAND[1] or n_regions >= FEW):
        return ()
    return (
        f"the 95 % interval of {quantity} is not exact: in simulated surveys of {size} regions it covers in "
        f"{low:.1f} to {high:.1f} of 100",
    )


def harder(quantity: str) -> str:
    """What would break an interval, with what simulation says; "" where skewed effects do not."""
    low, high = HARDER.get(quantity, BAND)
    if low >= BAND[0]:
        return ""
    return (
        ". So would skewed or heavy-tailed effects of regions: simulated, it then covers in "
        f"{low:.1f} to {high:.1f} of 100"
    )
