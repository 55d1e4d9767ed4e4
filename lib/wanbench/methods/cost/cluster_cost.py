"""What a cluster costs: fixed, variable and in total, per hour, per million messages, per GB and per year."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.checks import check_kind
from wanbench.formatting import number, percent, quantity
from wanbench.methods.result import Estimate, Result

from .deployment import FIXED, PARTS, PER, S_PER_H, TOTAL, VARIABLE, Deployment
from .propagation import estimate


@dataclass(frozen=True, repr=False)
class ClusterCost(Result):
    """
    The cost of a deployment.

    Attributes
    ----------
    deployment : Deployment
    by : dict
        (part, per) to Estimate in USD: "fixed", "variable" or "total", per "hour", "million messages", "GB" or "year".
    variable_over_fixed : Estimate
        Variable over fixed cost, at the deployment's message rate.
    """

    deployment: Deployment
    by: dict[tuple[str, str], Estimate]
    variable_over_fixed: Estimate | None

    TITLE = "Cost of the cluster"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The total per million messages first, then every other part and measure."""
        main = (TOTAL, PER[1])
        rest = tuple(each for key, each in self.by.items() if key != main)
        ratio = () if self.variable_over_fixed is None else (self.variable_over_fixed,)
        return (self.by[main], *rest, *ratio)

    @property
    def even_messages_per_s(self) -> float:
        """The rate at which variable cost equals fixed cost; infinite if messages cost nothing."""
        variable = self.by[VARIABLE, "million messages"].estimate / 1e6 * S_PER_H
        return self.by[FIXED, "hour"].estimate / variable if variable else float("inf")

    @property
    def sentence(self) -> str:
        """Total and parts at the rate."""
        rate = self.deployment.messages_per_s.value
        hour = {part: self.by[part, "hour"] for part in PARTS}
        million, worst = self.by[TOTAL, PER[1]], self.by[TOTAL, PER[1]].others[0]
        ranges = f"; with {worst.method} {text}" if (text := million.spell(worst)) else ""
        share = hour[VARIABLE].estimate / hour[TOTAL].estimate if hour[TOTAL].estimate else 0.0
        return (
            f"At {number(rate)} messages/s the cluster costs {hour[TOTAL].formatted} per hour, of which "
            f"{quantity(share, 'fraction')} is variable, and {million.formatted} per million messages "
            f"({percent(million.level)} interval {million.formatted_interval or 'none'}{ranges}; {million.counted})."
        )

    def formatted_table(self) -> pd.DataFrame:
        """One row per measure: fixed, variable and total, the interval of the total, and its widest range."""
        rows = [
            {"USD per": per}
            | {part: self.by[part, per].formatted for part in PARTS}
            | {
                f"{self.by[TOTAL, per].formatted_level} interval of the total": self.by[TOTAL, per].formatted_interval,
                f"with {self.by[TOTAL, per].others[0].method}": self.by[TOTAL, per].spell(
                    self.by[TOTAL, per].others[0]
                ),
            }
            for per in PER
        ]
        return pd.DataFrame(rows)


def cluster_cost(deployment: Deployment) -> ClusterCost:
    """
    What a deployment costs at its message rate.

    Parameters
    ----------
    deployment : Deployment
        `deployment.changed(messages_per_s=...)` prices it at another rate.

    Examples
    --------
    >>> nine = Deployment(brokers=9, instance_usd_per_hour=0.388472, disks=18, disk_gb=300, disk_usd_per_gb_month=0.04,
    ...                   hours_per_month=720, messages_per_s=1.45e6, message_bytes=1000,
    ...                   region_bytes_per_message=2000, region_usd_per_gb=0.01)
    >>> cost = cluster_cost(nine)
    >>> [round(cost.by[part, "hour"].estimate, 3) for part in ("fixed", "variable", "total")]
    [3.796, 104.4, 108.196]
    """
    inputs = check_kind("deployment", deployment, Deployment).inputs
    by = {}
    for per in PER:
        for part in PARTS:
            by[part, per] = estimate(
                lambda values, part=part, per=per: Deployment.usd(values, part, per),
                inputs,
                quantity=f"{part} cost per {per}",
                claim=f"The {part} cost per {per} is {{}}",
                unit="USD",
            )
    ratio = None
    if by[FIXED, "hour"].estimate > 0:
        ratio = estimate(
            lambda values: Deployment.usd(values, VARIABLE, "hour") / Deployment.usd(values, FIXED, "hour"),
            inputs,
            quantity="variable over fixed cost",
            claim=f"At {number(deployment.messages_per_s.value)} messages/s the variable cost is {{}} the fixed one",
            unit="times",
        )
    return ClusterCost(deployment, by, ratio)
