"""Measure how long writes and reads were interrupted (RTO)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_kind
from wanbench.figures import primitives, theme
from wanbench.methods.result import Fields
from wanbench.methods.result.means import Median
from wanbench.methods.result.over_episodes import OverEpisodes

from .episodes import AFFECTED, SURVIVING, Episode, Episodes
from .gaps import longest_gap

WARMUP_S = 1.0
"""Seconds of traffic that are skipped at the start, while clients still connect and find leaders."""
FEWEST = 5
"""Minimum number of events before the fault: a stream with fewer events has no rate that a fault could interrupt."""
SHOWN = ("writes", "writes_partition", "reads_partition")
"""
Quantities in the figure and the sentence: the whole service, and the partitions that were longest without writes and
without reads.
"""


@dataclass(frozen=True, repr=False)
class Recovery(OverEpisodes):
    """
    The longest outage of each quantity of QUANTITIES: one row per episode, in s.

    `streams` has the outage of every single stream, one row per episode and client or partition: the columns of the
    key, quantity (one of QUANTITIES), unit (number of the client or partition), start_s and end_s of the gap (since the
    fault), outage_s (the gap minus the usual gap of the schedule) and censored (whether outage_s is a lower bound).
    """

    streams: pd.DataFrame = field(default_factory=pd.DataFrame)

    TITLE = "Outages: median over episodes, with interval"
    QUANTITIES: ClassVar[dict[str, str]] = {
        "writes": "all writes, other regions",
        "writes_partition": "writes to the worst partition, other regions",
        "writes_affected": "writes of the worst producer, affected region",
        "reads_partition": "reads of the worst partition, any region",
    }

    @property
    def sentence(self) -> str:
        parts = []
        for name in self.settings:
            whole, worst, reads = (self.of(name, key).formatted_with_interval for key in SHOWN)
            parts.append(
                f"“{name}”: outside the affected region no write was acknowledged for a median of {whole}. For "
                f"the worst partition, no write was acknowledged for {worst} and nothing was read for {reads}."
            )
        return "\n".join(parts)

    def figure(self) -> go.Figure:
        """Draw the outages of every episode and their medians: a row per setting, a colour per quantity."""
        figure, settings, rows = go.Figure(), self.settings, self.rows
        for k, name in enumerate(SHOWN):
            shade, offset = theme.SERIES_COLOURS[k], 0.24 * (k - 1)
            symbols = rows[f"{name}_censored"].eq(True).map({True: "triangle-right", False: "circle"}).tolist()
            marker = {"size": 6, "color": shade, "opacity": 0.5, "symbol": symbols}
            y = rows.setting.map(settings.index) + offset + theme.spread(len(rows), 0.1)
            style = {"hovertemplate": "one episode: %{x:.2f} s<extra></extra>", "marker": marker}
            figure.add_scatter(x=rows[name], y=y, mode="markers", showlegend=False, **style)
            there = {setting: estimate for setting in settings if (estimate := self.of(setting, name)).n}
            at, medians = [settings.index(setting) + offset for setting in there], list(there.values())
            marker = {"size": 11, "color": shade, "symbol": ("circle", "square", "diamond")[k]}
            primitives.estimate_points(figure, at, medians, marker=marker, name=self.QUANTITIES[name])
            open_ends(figure, at, medians, 1.04 * rows[list(SHOWN)].max(axis=None), shade)
        primitives.label_rows(figure, [theme.plain(name) for name in settings])
        figure.update_xaxes(title="outage (s)", rangemode="tozero")
        legend = {"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom"}
        figure.update_layout(margin={"b": 110}, height=240 + 64 * len(settings), legend=legend)
        outages = sorted((self.of(name, "writes") for name in settings), key=lambda one: one.estimate)
        ends = " to ".join(dict.fromkeys(one.formatted for one in outages[:: max(1, len(outages) - 1)]))
        stopped = f"The median outage of all writes is {ends}, by setting"
        return theme.finish(
            figure,
            name="outages",
            title=theme.headline(stopped, "How long writes and reads stopped"),
            subtitle="Small marker: one episode (triangle: at least this long). Large marker: median, with its "
            "interval. With fewer than six episodes the interval runs from the smallest to the largest value. "
            "Dotted: the interval has no upper end.",
            alt=f"Outages per setting. {self}",
            caption=str(self),
            table=rows,
        )


def recovery(episodes: Episodes) -> Recovery:
    """
    Measure the outages of every episode with a fault.

    An outage is the longest gap between acknowledgements (or receipts) that overlaps the fault, minus the usual gap of
    the stream. Writes are those of the producers outside the affected regions, unless stated otherwise; reads are those
    of all consumers.

    An outage that ended only with healing is a lower bound. For producers in the affected regions it is exact, because
    only healing can restore them.
    """
    rows, streams = [], []
    for each in check_kind("episodes", episodes, Episodes).with_fault():
        about = each.key | {"setting": each.setting}
        own = [about | row for row in _streams(each)]
        streams += own
        rows.append(about | _worst(own))
    return Recovery(pd.DataFrame(rows), streams=pd.DataFrame(streams))


def _worst(streams: list[Fields]) -> Fields:
    """Return the longest outage of each quantity in s, and whether it is a lower bound ("<quantity>_censored")."""
    worst = {}
    for row in sorted(streams, key=lambda row: row["end_s"] - row["start_s"]):
        name = row["quantity"]
        worst[name] = max(row["outage_s"], worst.get(name, 0.0))
        worst[f"{name}_censored"] = row["censored"]
    return dict.fromkeys(Recovery.QUANTITIES, np.nan) | worst


def _streams(episode: Episode) -> Iterator[Fields]:
    writes, reads = episode.acknowledgements, episode.receipts
    outside = writes[writes.side == SURVIVING]
    yield from _stream(episode, "writes", None, outside.at_s)
    for client, part in writes[writes.side == AFFECTED].groupby("client"):
        yield from _stream(episode, "writes_affected", client, part.at_s)
    for quantity, events in (("writes_partition", outside), ("reads_partition", reads)):
        for partition, part in events.groupby("partition"):
            yield from _stream(episode, quantity, partition, part.at_s)


def _stream(episode: Episode, quantity: str, unit: object, times: pd.Series) -> Iterator[Fields]:
    begin, (first, last) = episode.fault_at_s, episode.due
    earlier = times[(times >= first + WARMUP_S) & (times < begin)]
    if len(earlier) < FEWEST:
        return
    schedule_s, healed = (begin - first - WARMUP_S) / len(earlier), episode.heal_at_s
    cut = None if quantity == "writes_affected" else healed
    outage = longest_gap(times, begin, healed, last, schedule_s, healed_s=cut)
    # a gap no longer than the longest one before the fault is not an outage, so healing did not end one
    censored = outage.censored and outage.end_s - outage.start_s > np.diff(np.sort(earlier)).max()
    ends = {"start_s": outage.start_s - begin, "end_s": outage.end_s - begin}
    yield {"quantity": quantity, "unit": unit} | ends | {"outage_s": outage.length_s, "censored": censored}


def open_ends(figure: go.Figure, at: Sequence[float], medians: Sequence[Median], edge: float, shade: str) -> None:
    """Draw a dotted line from the median to an arrow at `edge` for every interval without an upper end."""
    for y, median in zip(at, medians, strict=True):
        if median.high == inf:
            marker = {"symbol": "triangle-right", "size": [0, 10], "opacity": 1, "line": {"width": 0}}
            style = {"mode": "lines+markers", "showlegend": False, "hoverinfo": "skip", "marker": marker}
            line = {"color": shade, "dash": "dot", "width": 2}
            figure.add_scatter(x=[median.estimate, edge], y=[y, y], line=line, **style)
