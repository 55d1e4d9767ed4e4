"""Check the placement of leaders and replicas: balanced over brokers, spread over regions, in sync."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_kind
from wanbench.errors import MissingDataError
from wanbench.figures import theme
from wanbench.formatting import count
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate, Result
from wanbench.methods.result.means import share_of
from wanbench.methods.trials.rates import TrialRates

AROUND_PX = 190
ROW_PX = 34
METHOD = "exact binomial interval (Clopper & Pearson 1934)"
ASSUMPTION = "Topics are placed independently; each trial has one topic"


@dataclass(frozen=True, repr=False)
class Placement(Result):
    """
    Placement of leaders and replicas.

    balanced: Share of topics in which the numbers of partitions led by brokers differ by at most one.
    spread: Share of topics in which each partition has its replicas in as many regions as possible.
    in_sync: Share of topics that were spread in this way, with all replicas in sync at the end of the load.
    topics: One row per trial and topic: setting, partitions, brokers, fewest, most (partitions that a broker leads),
        balanced, spread, all_in_sync, moved (partitions not led by their preferred replica).
    replicas: The rows of table placements for the topic that the figure shows.
    """

    balanced: Estimate
    spread: Estimate
    in_sync: Estimate
    topics: pd.DataFrame
    replicas: pd.DataFrame

    TITLE = "Placement of leaders and replicas"

    @property
    def sentence(self) -> str:
        moved = int((self.topics.moved > 0).sum())
        shares = " ".join(estimate.sentence for estimate in self.estimates)
        return f"{shares} Topics in which a partition was not led by its preferred replica: {moved}."

    def table(self) -> pd.DataFrame:
        return self.topics

    def figure(self) -> go.Figure:
        rows, figure = self.replicas, go.Figure()
        brokers = rows[["broker", "region"]].drop_duplicates().sort_values(["region", "broker"], ignore_index=True)
        at = {broker: k for k, broker in enumerate(brokers.broker)}
        regions = list(dict.fromkeys(brokers.region))
        for name, leads, symbol in (("leader", True, "square"), ("follower", False, "square-open")):
            part = rows[rows.leads == leads]
            shades = [theme.SERIES_COLOURS[regions.index(region)] for region in part.region]
            style = {"mode": "markers", "name": name, "marker": {"symbol": symbol, "size": 11, "color": shades}}
            text = [theme.plain(f"broker {row.broker} in {row.region}") for row in part.itertuples()]
            hover = {"text": text, "hovertemplate": "partition %{x}, %{text}<extra></extra>"}
            figure.add_scatter(x=part.partition, y=[at[broker] for broker in part.broker], **style, **hover)
        labels = [f"{row.broker} ({theme.plain(row.region)})" for row in brokers.itertuples()]
        ticks = {"tickvals": list(range(len(labels))), "ticktext": labels}
        figure.update_yaxes(title="broker", range=[len(labels) - 0.5, -0.5], **ticks)
        figure.update_xaxes(title="partition", zeroline=False)
        figure.update_layout(height=AROUND_PX + ROW_PX * len(labels), legend=theme.LEGEND_ON_TOP)
        return theme.finish(
            figure,
            name="placement",
            title=f"Leaders are balanced in {self.balanced.formatted} of topics",
            subtitle="One topic of the run. Filled: the leader of a partition; hollow: its followers; "
            "colours: regions.",
            alt=f"Leaders and followers of {count(rows.partition.nunique(), 'partition')}. {self}",
            caption=str(self),
            table=rows[["partition", "replica", "broker", "region", "leads", "in_sync"]],
        )


def placement(rates: TrialRates, tables: Mapping[str, pd.DataFrame], *, setting: str = "baseline", level: float = 0.95):
    """
    Check the placement of the topics of all trials; the figure shows the first topic of a setting.

    Raises MissingDataError: the run has no table placements.
    """
    check_kind("rates", rates, TrialRates)
    rows = check_kind("tables", tables, Mapping).get("placements")
    rows = rows if rows is None or rows.empty else rates.part(rows)
    if rows is None or rows.empty:
        raise MissingDataError("the run has no placement of replicas.")
    regions, brokers, topics = rows.region.nunique(), rows.broker.nunique(), []
    for key, part in rows.groupby([*KEY, "topic"], sort=False):
        leaders = part[part.leads].groupby("broker").size().reindex(rows.broker.unique(), fill_value=0)
        placed = part.groupby("partition").agg(replicas=("broker", "size"), regions=("region", "nunique"))
        topics.append(
            dict(zip([*KEY, "topic"], key, strict=True))
            | {"partitions": len(placed), "brokers": brokers, "fewest": leaders.min(), "most": leaders.max()}
            | {"balanced": leaders.max() - leaders.min() <= 1}
            | {"spread": bool((placed.regions == placed.replicas.clip(upper=regions)).all())}
            | {"all_in_sync": bool(part.in_sync.all()), "moved": int((part.leads & (part.replica > 0)).sum())}
        )
    result = pd.DataFrame(topics).merge(rates.rates[[*KEY, "setting"]], on=KEY)
    first = result[result.setting == setting].head(1)
    first = result.head(1) if first.empty else first
    spread = "In {} of topics every partition had its replicas in as many regions as possible"
    synced = "In {} of topics replicas were in as many regions as possible, and all in sync at the end of the load"
    shares = {
        "balanced topics": (
            result.balanced,
            "In {} of topics brokers led the same number of partitions, give or take one",
        ),
        "topics spread over regions": (result.spread, spread),
        "topics in sync in all regions": (result.spread & result.all_in_sync, synced),
    }
    about = {"basis": count(len(result), "topic"), "method": METHOD, "assumption": ASSUMPTION, "level": level}
    estimates = [
        share_of(int(flags.sum()), len(flags), quantity=quantity, claim=claim, **about)
        for quantity, (flags, claim) in shares.items()
    ]
    return Placement(*estimates, result, rows.merge(first[[*KEY, "topic"]], on=[*KEY, "topic"]))
