"""Compute how often a message crosses regions, and which inputs the cost per message depends on most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_kind, check_number
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.figures.primitives import label_rows, reference_line
from wanbench.formatting import number, quantity
from wanbench.methods.cost.deployment import MEASURED, MILLION, TOTAL, Deployment, moved
from wanbench.methods.result import RowsResult, text_table


class RegionCopies(NamedTuple):
    """Mean numbers of copies of a message that cross regions: to its leader, to followers, to each consumer group."""

    produced: float
    replicated: float
    consumed: float

    @property
    def total(self) -> float:
        return sum(self)


def region_copies(*, regions: int, replication: int) -> RegionCopies:
    """
    Compute how often a message crosses regions if clients, leaders and replicas are spread evenly over the regions.

    Each of the R replicas is equally often the leader. So with n_i replicas in region i, R - sum(n_i^2) / R copies
    cross to followers. Consumers read from a replica in their own region if there is one (follower fetching).

    >>> copies = region_copies(regions=3, replication=3)
    >>> round(copies.produced, 3), copies.replicated, copies.consumed
    (0.667, 2.0, 0.0)
    """
    check_number("regions", regions, 1, whole=True)
    check_number("replication", replication, 1, whole=True)
    fewest, more = divmod(replication, regions)
    replicas = [fewest + 1] * more + [fewest] * (regions - more)
    elsewhere = (regions - 1) / regions
    without_replica = 1 - min(replication, regions) / regions
    replicated = replication - sum(n**2 for n in replicas) / replication
    return RegionCopies(elsewhere, replicated, without_replica)


COLOURS = {MEASURED: theme.WITHIN, "range": theme.OUTSIDE}
BAR = 0.7  # Height of a bar as a share of its row.
NAMES = {MEASURED: "measured", "range": "price or assumption"}
TORNADO_COLUMNS = ("input", "kind", "unit", "low", "value", "high", "usd_at_low", "usd_at_high", "swing_usd", "source")


@dataclass(frozen=True, repr=False)
class Tornado(RowsResult):
    """
    The cost of a million messages with one input at a time at each end of its range.

    `rows` has one row per input with the `TORNADO_COLUMNS`, the largest effect first; `usd` is the cost in USD with
    every input at its central value.
    """

    usd: float

    TITLE = "The price with each input at the ends of its range"

    @property
    def sentence(self) -> str:
        first = self.rows.iloc[0]
        return (
            f"The {TOTAL} price, {quantity(self.usd, 'USD')} per {MILLION}, depends most on the "
            f"{WORDS[first.input]}. If this "
            f"input goes from {number(first.low)} to {number(first.high)} {first.unit}, the {TOTAL} price goes from "
            f"{number(first.usd_at_low)} to {number(first.usd_at_high)} USD. Ranges of prices cover the regions and "
            "dates of the price list. Ranges of measured inputs are their confidence intervals."
        )

    def formatted_table(self) -> pd.DataFrame:
        rows = self.rows
        shown = {"input": rows["input"].map(WORDS), "unit": rows.unit, "lowest": rows.low, "value": rows.value}
        shown |= {"highest": rows.high, "USD at the lowest": rows.usd_at_low, "USD at the highest": rows.usd_at_high}
        return text_table(pd.DataFrame(shown | {"source": rows.source}))

    def figure(self) -> go.Figure:
        figure = go.Figure()
        rows = self.rows
        for kind, part in rows.groupby("kind", sort=False):
            ends = part[["usd_at_low", "usd_at_high"]]
            width, least = ends.max(axis=1) - ends.min(axis=1), ends.min(axis=1)
            style = {"orientation": "h", "width": BAR, "marker": {"color": COLOURS[kind]}, "name": NAMES[kind]}
            hover = "%{base:.4g} to %{x:.4g} USD<extra></extra>"
            figure.add_bar(y=part.index, x=width, base=least, hovertemplate=hover, **style)
        reference_line(figure, x=self.usd)
        text = [f"{number(row.low)} to {number(row.high)} {row.unit}" for row in rows.itertuples()]
        label_rows(
            figure, [f"{WORDS[name]}<br>{theme.plain(ends)}" for name, ends in zip(rows.input, text, strict=True)]
        )
        figure.update_xaxes(title=f"USD per {MILLION}")
        figure.update_layout(barmode="overlay", legend=theme.LEGEND_ON_TOP)
        return theme.finish(
            figure,
            name="cost-tornado",
            title=theme.headline(
                f"The price depends most on the {WORDS[rows.input.iloc[0]]}", "What the price depends on"
            ),
            subtitle="Bar: price with one input at the ends of its range, all other inputs at their values. "
            f"Dashed: {quantity(self.usd, 'USD')}.",
            alt=f"Bars of a {TOTAL} price, one per input. {self.sentence}",
            caption=self.sentence,
            table=rows,
        )


def tornado(deployment: Deployment) -> Tornado:
    """
    Compute the cost of a million messages with one input at a time at each end of its range.

    Raises ParameterError: no input has a range.

    >>> small = Deployment(brokers=1, instance_usd_per_hour=(0.5, 1, 2), messages_per_s=1e6 / 3600, message_bytes=1000,
    ...                    region_bytes_per_message=1000, region_usd_per_gb=(1, 1, 9))
    >>> tornado(small).rows[["input", "usd_at_low", "usd_at_high"]].values.tolist()
    [['region_usd_per_gb', 2.0, 10.0], ['instance_usd_per_hour', 1.5, 3.0]]
    """
    inputs = check_kind("deployment", deployment, Deployment).inputs
    rows = []
    for name, (at_low, at_high) in moved(lambda values: Deployment.usd(values, TOTAL, MILLION), inputs).items():
        one = inputs[name]
        ends = (one.low, one.value, one.high, at_low, at_high, abs(at_high - at_low))
        rows.append((name, one.kind, one.unit, *ends, one.source))
    if not rows:
        raise ParameterError("no input of the deployment has a range; allowed: at least one (low, value, high).")
    frame = pd.DataFrame(rows, columns=TORNADO_COLUMNS).sort_values("swing_usd", ascending=False, kind="stable")
    return Tornado(frame.reset_index(drop=True), float(Deployment.usd(deployment.values(), TOTAL, MILLION)))


WORDS = {
    "brokers": "number of brokers",
    "instance_usd_per_hour": "price of an instance",
    "messages_per_s": "number of messages per second",
    "message_bytes": "size of a message",
    "region_bytes_per_message": "number of bytes between regions per message",
    "region_usd_per_gb": "price of transfer between regions",
    "disks": "number of disks",
    "disk_gb": "size of a disk",
    "disk_usd_per_gb_month": "price of disks",
    "hours_per_month": "number of hours in a month",
}
