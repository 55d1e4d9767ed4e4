"""Show one episode over time: leaders, replicas in sync, partitions of consumers, and rates of clients."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme
from wanbench.methods.result import Result

from .episodes import Episode, Episodes
from .gaps import WINDOW_S, rates

TITLES = (
    "partitions led by each broker",
    "partitions with all replicas in sync",
    "partitions assigned to the consumers of each region",
    "acknowledgements per second to the producers of each region",
    "receipts per second by the consumers of each region",
)
DASHES = ("solid", "dash", "dot")


@dataclass(frozen=True, repr=False)
class Timeline(Result):
    """
    Observations before, during and after one fault, by one observer outside the affected regions.

    Every table has at_s, the seconds since the fault was ordered. `leaders` has the number of partitions that each
    broker leads, `replicas` the number of partitions with all replicas in sync (`full`), `group` the number of
    partitions assigned to the consumers of each region, and `rates` the events per second (`per_s`, over the preceding
    second) of each kind ("writes", "reads") and region.
    """

    episode: Episode
    leaders: pd.DataFrame
    replicas: pd.DataFrame
    group: pd.DataFrame
    rates: pd.DataFrame

    @property
    def heal_s(self) -> float:
        """When healing was ordered, in seconds since the fault was ordered."""
        return self.episode.heal_at_s - self.episode.fault_at_s

    @property
    def sentence(self) -> str:
        about = self.episode.about
        where = " and ".join(sorted(self.episode.affected))
        return (
            f"An episode of “{about.setting}” in block {about.get('block')}. The fault hits {where} for "
            f"{self.heal_s:.0f} s."
        )

    def table(self) -> pd.DataFrame:
        parts = [
            self.leaders.assign(panel="leaders", of=self.leaders.broker.astype(str), value=self.leaders.partitions),
            self.replicas.assign(panel="in sync", of="all", value=self.replicas.full),
            self.group.assign(panel="assigned", of=self.group.region, value=self.group.partitions),
            self.rates.assign(panel=self.rates.kind, of=self.rates.region, value=self.rates.per_s),
        ]
        return pd.concat([part[["panel", "at_s", "of", "value"]] for part in parts], ignore_index=True)

    def figure(self) -> go.Figure:
        """Draw leaders, replicas in sync, assignment of consumers and rates of clients on one time axis."""
        figure = make_subplots(5, 1, shared_xaxes=True, vertical_spacing=0.05, subplot_titles=TITLES)
        regions = sorted(set(self.rates.region) | set(self.group.region))
        shades = {name: theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)] for k, name in enumerate(regions)}
        for k, (broker, own) in enumerate(self.leaders.groupby("broker")):
            line = {"color": theme.TEXT if k < 3 else theme.MUTED, "dash": DASHES[k % 3], "shape": "hv"}
            more = {"legendgroup": "brokers", "showlegend": True}
            _line(figure, 1, own.at_s, own.partitions, f"broker {broker:.0f}", line, **more)
        line = {"color": theme.TEXT, "shape": "hv"}
        _line(figure, 2, self.replicas.at_s, self.replicas.full, "all replicas in sync", line)
        for region, own in self.group.groupby("region"):
            name, line = theme.plain(region), {"color": shades[region], "shape": "hv"}
            _line(figure, 3, own.at_s, own.partitions, name, line, legendgroup=name)
        for (kind, region), own in self.rates.groupby(["kind", "region"], sort=False):
            line = {"color": shades[region], "width": 3 if region in self.episode.affected else 1.5}
            name, row = theme.plain(region), 4 if kind == "writes" else 5
            _line(figure, row, own.at_s, own.per_s, name, line, legendgroup=name, showlegend=row == 4)
        figure.add_vrect(x0=0, x1=self.heal_s, fillcolor=theme.OUTSIDE, opacity=0.1, line_width=0)
        figure.update_xaxes(title="time since the fault was ordered (s)", row=5, col=1)
        figure.update_yaxes(rangemode="tozero")
        figure.update_annotations(font_size=13)
        figure.update_layout(height=900, legend={"orientation": "h", "y": -0.08})
        return theme.finish(
            figure,
            name=f"timeline-{stem(self.episode.setting)}",
            title=f"“{self.episode.setting}” over time",
            subtitle="Shaded: from the order to begin the fault to the order to heal it. Thick: the affected region. "
            "Each rate is that of the preceding second. A client in one other region observes leaders, replicas and "
            "the consumer group.",
            alt=f"Five timelines around a fault. {self}",
            caption=str(self),
            table=self.table(),
            headroom_px=theme.PANEL_TITLES_PX,
        )


def _line(
    figure: go.Figure, row: int, x: pd.Series, y: pd.Series, name: str, line: theme.Settings, **more: object
) -> None:
    style = {"mode": "lines", "name": name, "line": line, "showlegend": False, "row": row, "col": 1}
    style["hovertemplate"] = "%{x:.1f} s: %{y:.0f}<extra>" + name + "</extra>"
    figure.add_scatter(x=x, y=y, **style | more)


def stem(text: str) -> str:
    """
    Convert a text to a part of a file name: lower case, with hyphens.

    >>> stem("cut at aws:us-east-1")
    'cut-at-aws-us-east-1'
    """
    return "-".join("".join(each if each.isalnum() and each.isascii() else " " for each in text.lower()).split())


def timeline(episodes: Episodes, setting: str) -> Timeline:
    """Return the observations of the first episode of a setting with a fault."""
    episode = episodes.of(setting).with_fault().items[0]
    zero = episode.fault_at_s
    samples = episode.samples
    # one watcher's view: two would interleave, and one that lags would make leaders flicker
    watcher = samples.groupby("region").size().idxmax()
    seen = samples[samples.region == watcher]
    leaders = _filled(seen[seen.leader >= 0].groupby(["at_s", "leader"]).size(), "broker")
    full = (seen.n_isr >= int(episode.about.replication)).groupby(seen.at_s).sum()
    replicas = full.rename("full").reset_index()
    group = _filled(episode.members.groupby(["at_s", "client_region"]).n_partitions.sum(), "region")
    parts = []
    for kind, events in (("writes", episode.acknowledgements), ("reads", episode.receipts)):
        for region, of_region in events.groupby("region"):
            starts, per_s = rates(of_region.at_s, *episode.due)
            about = {"at_s": starts + WINDOW_S - zero, "kind": kind, "region": region}
            parts.append(pd.DataFrame(about | {"per_s": per_s}))
    shifted = [frame.assign(at_s=frame.at_s - zero) for frame in (leaders, replicas, group)]
    return Timeline(episode, shifted[0], shifted[1], shifted[2], pd.concat(parts, ignore_index=True))


def _filled(numbers: pd.Series, name: str) -> pd.DataFrame:
    """Return a row for every time and every broker or region (`name`); numbers of partitions that are missing are 0."""
    return numbers.unstack(fill_value=0).stack().reset_index().set_axis(["at_s", name, "partitions"], axis=1)
