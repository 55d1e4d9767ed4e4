"""Duration of outages of writes and reads (RTO): per client, per partition and overall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_kind
from wanbench.figures import primitives, theme
from wanbench.methods.result.means import Median
from wanbench.methods.result.over_episodes import OverEpisodes

from .episodes import HIT, SURVIVING, Episode, Episodes
from .gaps import longest_gap, time_to_recover

WARMUP_S = 1.0
"""Seconds of traffic to skip at the start, when clients still connect and find leaders."""
FEWEST = 5
"""
Minimum number of events before the fault. A stream with fewer is left out, because it has no rate that could be
interrupted.
"""


SHOWN = ("writes", "writes_partition", "reads_partition")
"""Quantities drawn: the whole service, and the worst partition to write and to read. The others are in the table."""


@dataclass(frozen=True, repr=False)
class Recovery(OverEpisodes):
    """
    Outages per episode, the worst stream of each kind.

    `streams` has a row per episode and stream: key, quantity (one of QUANTITIES), unit (number of client or partition),
    start_s and end_s (since the fault, including the schedule's gap), outage_s, censored.
    """

    streams: pd.DataFrame = field(default_factory=pd.DataFrame)

    TITLE = "Outages: median over episodes, with interval"
    QUANTITIES: ClassVar[dict[str, str]] = {
        "writes": "all writes, other regions",
        "writes_partition": "writes to the worst partition, other regions",
        "writes_client": "worst producer, other regions",
        "writes_hit": "worst producer, hit region",
        "writes_back": "writes at 95 % of the earlier rate, other regions",
        "writes_after": "writes to the worst partition, begun after healing",
        "reads": "all reads, other regions",
        "reads_partition": "reads of the worst partition, any region",
        "reads_client": "worst consumer, other regions",
        "reads_hit": "worst consumer, hit region",
        "reads_back": "reads at 95 % of the earlier rate, other regions",
        "reads_after": "reads of the worst partition, begun after healing",
    }

    @property
    def sentence(self) -> str:
        parts = []
        for name in self.settings:
            whole, worst, reads = (self.of(name, key).formatted_with_interval for key in SHOWN)
            parts.append(
                f"“{name}”: outside the hit region no write was acknowledged for {whole}, in the worst partition for "
                f"{worst}; the worst partition was not read for {reads}."
            )
        return " ".join(parts)

    def figure(self, *, note: str = "") -> go.Figure:
        """One row per setting; per quantity a colour, small points for episodes and a large one for their median."""
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
        return theme.finish(
            figure,
            name="outages",
            title="How long nothing was answered",
            subtitle="Small: one episode (a triangle: at least this long). Large: median; bars: its interval, with "
            "fewer than six episodes from the smallest to the largest; dotted: without an upper end.",
            alt=f"Outages per setting. {self}",
            caption=str(self),
            table=rows,
            note=note,
        )


def recovery(episodes: Episodes) -> Recovery:
    """
    Measure the outages of every stream of every episode with a fault.

    An outage is the longest gap between acknowledgements (or receipts) that overlaps the fault, less the stream's usual
    gap. "All" are those of all clients outside the hit regions together; a partition's writes are those of these
    clients, its reads those of any consumer.

    An outage that healing ended is a lower limit, except of clients in the hit regions, which only healing restores.
    Outages that begin after healing are counted separately.
    """
    rows, streams = [], []
    for each in check_kind("episodes", episodes, Episodes).with_fault():
        about = each.key | {"setting": each.setting}
        own = [about | row for row in _streams(each)]
        streams += own
        rows.append(about | _worst(own))
    return Recovery(pd.DataFrame(rows), streams=pd.DataFrame(streams))


def _worst(streams: list[dict]) -> dict:
    """Return the longest outage of each quantity; a lower limit if a censored one might have been the longest."""
    worst = {}
    for row in sorted(streams, key=lambda row: row["end_s"] - row["start_s"]):
        name = row["quantity"]
        worst[name] = max(row["outage_s"], worst.get(name, 0.0))
        worst[f"{name}_censored"] = row["censored"]
    return dict.fromkeys(Recovery.QUANTITIES, np.nan) | worst


def _streams(episode: Episode):
    for kind, events in (("writes", episode.acknowledgements), ("reads", episode.receipts)):
        outside = events[events.side == SURVIVING]
        yield from _stream(episode, kind, None, outside.at_s)
        for (side, client), part in events.groupby(["side", "client"]):
            yield from _stream(episode, f"{kind}_{'hit' if side == HIT else 'client'}", client, part.at_s)
        for partition, part in (outside if kind == "writes" else events).groupby("partition"):
            yield from _stream(episode, f"{kind}_partition", partition, part.at_s)
            yield from _stream(episode, f"{kind}_after", partition, part.at_s)
        if len(outside):
            begin, (first, last) = episode.fault_at_s, episode.due
            back = time_to_recover(outside.at_s, first + WARMUP_S, begin, last)
            end, healed = last - begin if np.isnan(back) else back, episode.heal_at_s - begin
            outage = {"start_s": 0.0, "end_s": end, "outage_s": min(end, healed), "censored": end > healed}
            yield {"quantity": f"{kind}_back", "unit": None} | outage


def _stream(episode: Episode, quantity: str, unit, times: pd.Series):
    begin, (first, last) = episode.fault_at_s, episode.due
    earlier = times[(times >= first + WARMUP_S) & (times < begin)]
    if len(earlier) < FEWEST:
        return
    schedule_s, healed = (begin - first - WARMUP_S) / len(earlier), episode.heal_at_s
    if quantity.endswith("_after"):
        times = times[(times >= healed) & (times <= last)]
        if times.empty:
            return
        outage = longest_gap(times, times.min(), last, last, schedule_s)
    else:
        cut = None if quantity.endswith("_hit") else healed
        outage = longest_gap(times, begin, healed, last, schedule_s, healed_s=cut)
    # what is no longer than a gap before the fault was no outage, so nothing ended it
    censored = outage.censored and outage.end_s - outage.start_s > np.diff(np.sort(earlier)).max()
    ends = {"start_s": outage.start_s - begin, "end_s": outage.end_s - begin}
    yield {"quantity": quantity, "unit": unit} | ends | {"outage_s": outage.length_s, "censored": censored}


def open_ends(figure: go.Figure, at: Sequence[float], medians: Sequence[Median], edge: float, shade: str) -> None:
    """For intervals that are open above, a dotted line from the median to an arrow at `edge`."""
    for y, median in zip(at, medians, strict=True):
        if median.high == inf:
            marker = {"symbol": "triangle-right", "size": [0, 10], "opacity": 1, "line": {"width": 0}}
            style = {"mode": "lines+markers", "showlegend": False, "hoverinfo": "skip", "marker": marker}
            line = {"color": shade, "dash": "dot", "width": 2}
            figure.add_scatter(x=[median.estimate, edge], y=[y, y], line=line, **style)
