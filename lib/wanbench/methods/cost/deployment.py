"""Components and load of a cluster: every input of its cost, with its range."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from wanbench.checks import check_choice
from wanbench.errors import ParameterError

from .inputs import MEASURED, Input, as_input

S_PER_H = 3600
H_PER_YEAR = 8760
H_PER_MONTH = 730.0
"""A twelfth of a year, by which clouds convert a price per month."""
GB = 1e9
"""Bytes per GB, as prices count them."""
FIXED, VARIABLE, TOTAL = "fixed", "variable", "total"
PARTS = (FIXED, VARIABLE, TOTAL)
MILLION = "million messages"
HOURS = {"hour": 1, "year": H_PER_YEAR}
PER = ("hour", MILLION, "GB", "year")
UNITS = {
    "brokers": "instances",
    "instance_usd_per_hour": "USD/h",
    "messages_per_s": "messages/s",
    "message_bytes": "bytes",
    "region_bytes_per_message": "bytes",
    "region_usd_per_gb": "USD/GB",
    "disks": "disks",
    "disk_gb": "GB",
    "disk_usd_per_gb_month": "USD/GB-month",
    "zone_bytes_per_message": "bytes",
    "zone_usd_per_gb": "USD/GB",
    "hours_per_month": "h",
}
DIVISORS = ("messages_per_s", "message_bytes", "hours_per_month")
"""Inputs that are divisors, so they must not be zero."""


@dataclass(frozen=True)
class Deployment:
    """
    The inputs of a cost. Each is a number, (low, value, high), an Estimate, or a price (`price_list.price`).

    Attributes
    ----------
    brokers, instance_usd_per_hour
        Number of instances, and the price of one.
    messages_per_s, message_bytes
        The mean rate of the whole cluster, and the payload of a message before compression.
    region_bytes_per_message, region_usd_per_gb
        Bytes between regions per message, counted on all links in both directions, and the price of 10^9 of them; none
        by default, for a cluster in one region.
    disks, disk_gb, disk_usd_per_gb_month
        Number of disks, the size of one, and the price.
    zone_bytes_per_message, zone_usd_per_gb
        The same between zones of a region; none by default.
    hours_per_month
        Divisor of monthly prices.

    Examples
    --------
    >>> small = Deployment(brokers=3, instance_usd_per_hour=0.4, messages_per_s=1000, message_bytes=1000,
    ...                    region_bytes_per_message=2000, region_usd_per_gb=0.01)
    >>> round(small.usd(small.values(), "total", "hour"), 3)
    1.272
    """

    brokers: Input
    instance_usd_per_hour: Input
    messages_per_s: Input
    message_bytes: Input
    region_bytes_per_message: Input = 0
    region_usd_per_gb: Input = 0
    disks: Input = 0
    disk_gb: Input = 0
    disk_usd_per_gb_month: Input = 0
    zone_bytes_per_message: Input = 0
    zone_usd_per_gb: Input = 0
    hours_per_month: Input = H_PER_MONTH

    def __post_init__(self):
        for name, unit in UNITS.items():
            made = as_input(name, getattr(self, name), unit, positive=name in DIVISORS)
            object.__setattr__(self, name, made)
        levels = {one.level for one in self.inputs.values() if one.kind == MEASURED}
        if len(levels) > 1:
            raise ParameterError(
                f"measured inputs have intervals at the levels {', '.join(f'{each:g}' for each in sorted(levels))}; "
                "allowed: one level."
            )

    @property
    def inputs(self) -> dict[str, Input]:
        """Every input by its name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def values(self) -> dict[str, float]:
        """The value of every input."""
        return {name: one.value for name, one in self.inputs.items()}

    def changed(self, **inputs) -> Deployment:
        """A copy with other inputs, such as `messages_per_s` for another rate."""
        for name in inputs:
            check_choice("input", name, UNITS)
        return replace(self, **inputs)

    @staticmethod
    def usd(values: dict, part: str, per: str):
        """
        Dollars of a part ("fixed", "variable", "total") per "hour", "million messages", "GB" or "year".

        Parameters
        ----------
        values : dict
            The value of every input, as in `values`; arrays are evaluated element by element.
        """
        monthly = values["disks"] * values["disk_gb"] * values["disk_usd_per_gb_month"]
        fixed = values["brokers"] * values["instance_usd_per_hour"] + monthly / values["hours_per_month"]
        messages_per_h = values["messages_per_s"] * S_PER_H
        usd_per_message = (
            values["region_bytes_per_message"] * values["region_usd_per_gb"]
            + values["zone_bytes_per_message"] * values["zone_usd_per_gb"]
        ) / GB
        if per in HOURS:
            parts = {FIXED: fixed * HOURS[per], VARIABLE: messages_per_h * usd_per_message * HOURS[per]}
        else:
            messages = 1e6 if per == MILLION else GB / values["message_bytes"]
            parts = {FIXED: _over(fixed, messages_per_h) * messages, VARIABLE: usd_per_message * messages}
        return parts[FIXED] + parts[VARIABLE] if part == TOTAL else parts[part]


def _over(fixed, messages_per_h):
    """Fixed cost per message; infinite at zero messages, which a wide interval may include."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.equal(fixed, 0), 0.0, np.divide(fixed, messages_per_h))[()]
