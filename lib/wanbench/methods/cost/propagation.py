"""
The interval of a number computed from several inputs: measured ones by their intervals, prices by their ranges.

Measured inputs are moved to the ends of their intervals one at a time, and the resulting changes are added in
quadrature: the method of variance estimates recovery (Zou & Donner 2008, Statistics in Medicine 27, 1693), here for any
function that is nearly linear over the intervals. Prices have no distribution, so a second interval takes every input
at its worst. `validity/cost.py` counts how often the first covers: 96 to 99 of 100 with 3 to 12 trials, 91 where the
errors of two inputs are correlated by 0.7 and add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from math import hypot, nan

import numpy as np

from wanbench.checks import refusal
from wanbench.methods.result import Estimate, Interval

from .inputs import MEASURED, Input

METHOD = (
    "measured inputs moved over their intervals one at a time, changes added in quadrature (Zou & Donner 2008); every "
    "price at its value"
)
ASSUMPTION = (
    "Measured inputs are independent of each other and the result is nearly linear over their intervals; list prices, "
    "without discounts, apply"
)
WORST = "all inputs at the ends of their ranges"
MOST_RANGES = 16
"""The ends of this many inputs make 65,536 combinations."""


def moved(function: Callable[[dict], float], inputs: Mapping[str, Input]) -> dict[str, tuple[float, float]]:
    """The value of a function with each ranged input at its low and at its high end."""
    values = {name: one.value for name, one in inputs.items()}
    return {
        name: tuple(float(function(values | {name: end})) for end in (one.low, one.high))
        for name, one in inputs.items()
        if one.has_range
    }


def estimate(
    function: Callable[[dict], float], inputs: Mapping[str, Input], *, quantity: str, claim: str, unit: str
) -> Estimate:
    """
    A function of the inputs' values, with its interval from measured inputs, and its widest range.

    Parameters
    ----------
    function : callable
        Takes {input: value}, in which a value may be an array; monotone in each input.
    """
    value = float(function({name: one.value for name, one in inputs.items()}))
    measured = [one for one in inputs.values() if one.kind == MEASURED]
    ends = [pair for name, pair in moved(function, inputs).items() if inputs[name].kind == MEASURED]
    lacking = [one.name for one in measured if not one.has_range]
    low = high = nan
    if any(least != most for least, most in ends) and not lacking:
        low = value - hypot(*(value - min(pair) for pair in ends))
        high = value + hypot(*(max(pair) - value for pair in ends))
    fewest = min(measured, key=lambda one: one.n, default=None)
    return Estimate(
        quantity=quantity,
        claim=claim,
        estimate=value,
        low=low,
        high=high,
        unit=unit,
        n=fewest.n if fewest else len(inputs),
        basis=fewest.basis if fewest else f"{len(inputs)} inputs, none measured",
        method=METHOD,
        assumption=ASSUMPTION,
        level=fewest.level if fewest else 0.95,
        others=(Interval(WORST, *extremes(function, inputs)),),
        warnings=tuple(f"no interval: {name} was measured without one" for name in lacking),
    )


def extremes(function: Callable[[dict], float], inputs: Mapping[str, Input]) -> tuple[float, float]:
    """The minimum and maximum of a function while each input stays in its range; NaN without ranges."""
    ranged = {name: one for name, one in inputs.items() if one.has_range}
    if not ranged:
        return nan, nan
    if len(ranged) > MOST_RANGES:
        raise refusal("inputs with a range", len(ranged), f"at most {MOST_RANGES}")
    corners = np.array(list(product(*((one.low, one.high) for one in ranged.values()))))
    values = {name: one.value for name, one in inputs.items()} | dict(zip(ranged, corners.T, strict=True))
    reached = np.asarray(function(values), dtype=float)
    return float(reached.min()), float(reached.max())
