"""Sensitivity of the price: each input moved over its own range, one at a time."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.checks import check_choice, check_kind
from wanbench.errors import ParameterError
from wanbench.formatting import number, quantity
from wanbench.methods.cost.deployment import PARTS, PER, TOTAL, Deployment
from wanbench.methods.cost.propagation import moved
from wanbench.methods.result import RowsResult

COLUMNS = ("input", "kind", "unit", "low", "value", "high", "usd_at_low", "usd_at_high", "swing_usd", "source")


@dataclass(frozen=True, repr=False)
class Tornado(RowsResult):
    """
    The price with each input at both ends of its range.

    Attributes
    ----------
    rows : DataFrame
        Per input, widest first: input, kind ("range" or "measured"), unit, low, value, high, usd_at_low, usd_at_high,
        swing_usd (their difference), source.
    usd : float
        The price with every input at its value.
    part, per : str
        The price shown, as in `tornado`.
    fixed : tuple of str
        Inputs without a range.
    """

    usd: float
    part: str
    per: str
    fixed: tuple[str, ...]

    TITLE = "The price with each input at the ends of its range"
    DRAWN_BY = "tornado_figure.tornado"

    @property
    def sentence(self) -> str:
        """The input that moves the price most, and by how much."""
        first = self.rows.iloc[0]
        return (
            f"The {self.part} price of {quantity(self.usd, 'USD')} per {self.per} depends most on "
            f"{words(first.input)}: from {number(first.low)} to {number(first.high)} {first.unit} it goes from "
            f"{number(first.usd_at_low)} to {number(first.usd_at_high)} USD. Ranges of prices "
            "cover the regions and dates in the list, ranges of measured inputs are their "
            "intervals: they show uncertainty, not probability."
        )


def tornado(deployment: Deployment, *, part: str = TOTAL, per: str = "million messages") -> Tornado:
    """
    Move each input with a range to both of its ends, all others at their values.

    Parameters
    ----------
    part : str
        "fixed", "variable" or "total".
    per : str
        "hour", "million messages", "GB" or "year".

    Raises
    ------
    ParameterError
        No input has a range.

    Examples
    --------
    >>> small = Deployment(brokers=1, instance_usd_per_hour=(0.5, 1, 2), messages_per_s=1e6 / 3600, message_bytes=1000,
    ...                    region_bytes_per_message=1000, region_usd_per_gb=(1, 1, 9))
    >>> found = tornado(small)
    >>> found.rows[["input", "usd_at_low", "usd_at_high"]].values.tolist()
    [['region_usd_per_gb', 2.0, 10.0], ['instance_usd_per_hour', 1.5, 3.0]]
    """
    check_choice("part", part, PARTS)
    check_choice("per", per, PER)
    inputs = check_kind("deployment", deployment, Deployment).inputs
    rows = []
    for name, (at_low, at_high) in moved(lambda values: Deployment.usd(values, part, per), inputs).items():
        one = inputs[name]
        ends = (one.low, one.value, one.high, at_low, at_high, abs(at_high - at_low))
        rows.append((name, one.kind, one.unit, *ends, one.source))
    if not rows:
        raise ParameterError("no input of the deployment has a range; allowed: at least one (low, value, high).")
    frame = pd.DataFrame(rows, columns=COLUMNS).sort_values("swing_usd", ascending=False, kind="stable")
    usd = float(Deployment.usd(deployment.values(), part, per))
    fixed = tuple(name for name in inputs if name not in set(frame.input))
    return Tornado(frame.reset_index(drop=True), usd, part, per, fixed)


def words(name: str) -> str:
    """
    The readable name of an input.

    >>> words("region_usd_per_gb")
    'price between regions'
    """
    return WORDS[name]


WORDS = {
    "brokers": "number of brokers",
    "instance_usd_per_hour": "price of an instance",
    "messages_per_s": "messages per second",
    "message_bytes": "size of a message",
    "region_bytes_per_message": "bytes between regions per message",
    "region_usd_per_gb": "price between regions",
    "disks": "number of disks",
    "disk_gb": "size of a disk",
    "disk_usd_per_gb_month": "price of disks",
    "zone_bytes_per_message": "bytes between zones per message",
    "zone_usd_per_gb": "price between zones",
    "hours_per_month": "hours per month",
}
