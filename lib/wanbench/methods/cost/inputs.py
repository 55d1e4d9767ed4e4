"""One input of a cost: its value, its range, and where the range comes from."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan

from wanbench.checks import check_number, refusal
from wanbench.formatting import quantity
from wanbench.methods.result import Estimate

GIVEN, RANGE, MEASURED = "given", "range", "measured"
"""A plain number; a number with the range in which it lies, such as a price; an estimate with its interval."""


@dataclass(frozen=True, repr=False)
class Input:
    """
    One number that a cost is computed from, with its range and source.

    Attributes
    ----------
    value, low, high : float
        In `unit`; `low` and `high` are NaN if the input has no range.
    kind : str
        "given", "range" or "measured".
    source : str
        The meaning or the source of the number.
    n : int, optional
        Units of replication behind a measured input.
    level : float, optional
        Confidence level of a measured input's interval.
    """

    name: str
    value: float
    unit: str
    low: float = nan
    high: float = nan
    kind: str = GIVEN
    source: str = ""
    n: int | None = None
    basis: str = ""
    level: float | None = None

    def __repr__(self) -> str:
        return f"{self.name}: {quantity(self.value, self.unit)} ({self.source or self.kind})"

    @property
    def has_range(self) -> bool:
        """Whether both ends of the range are known, and differ."""
        return isfinite(self.low) and isfinite(self.high) and self.low < self.high


def as_input(name: str, given, unit: str, *, positive: bool = False) -> Input:
    """
    An input from a number, a triple (low, value, high), an Estimate, or another Input such as a price.

    Parameters
    ----------
    positive : bool
        Whether zero is refused, for inputs that are divisors.

    Raises
    ------
    ParameterError
        For a number that is negative or not finite, or a range that does not contain its value.

    Examples
    --------
    >>> as_input("brokers", 9, "brokers").value, as_input("price", (0.01, 0.02, 0.08), "USD/GB").high
    (9, 0.08)
    """
    if isinstance(given, Estimate):
        low, high = max(given.low, 0.0), given.high
        found = Input(
            name, given.estimate, unit, low, high, MEASURED, given.quantity, given.n, given.counted, given.level
        )
    elif isinstance(given, Input):
        found = Input(
            name, given.value, unit, given.low, given.high, given.kind, given.source, given.n, given.basis, given.level
        )
    elif isinstance(given, list | tuple):
        if len(given) != 3:
            raise refusal(name, given, "a number, (low, value, high), an Estimate or a price")
        low, value, high = (check_number(name, end, 0) for end in given)
        found = Input(name, value, unit, low, high, RANGE, "range given")
    else:
        found = Input(name, check_number(name, given, 0), unit)
    check_number(name, found.value, 0, above=positive)
    if found.value == inf or found.low > found.value or found.high < found.value:
        raise refusal(name, given, "a finite number inside its range")
    if positive and found.low == 0 and found.kind != MEASURED:
        raise refusal(name, given, "a range above 0")
    return found
