"""Compare settings by the consequences of a fault: time without writes (RTO) and lost records (RPO)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import count, quantity
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Result

from .episodes import Episodes, episodes
from .losses import Losses, losses
from .recovery import Recovery, open_ends, recovery

COLUMNS = ["fault", "acks", "min_insync", "unclean", "group_protocol", "session_timeout_ms"]
COLUMNS += ["broker_settings", "client_settings"]
"""Columns of the table `faults` in which settings may differ."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """
    Losses and outages of every setting with a fault.

    `abouts` has one row per setting: its name and, as text, those of the columns `COLUMNS` in which settings differ.
    """

    lost: Losses
    recovered: Recovery
    abouts: pd.DataFrame

    TITLE = "What each setting costs: time and records"

    @property
    def settings(self) -> list[str]:
        """The names of the settings, in order."""
        return self.recovered.settings

    @cached_property
    def losing(self) -> list[str]:
        """The names of the settings that lost records."""
        return [name for name in self.settings if self.lost.sums(name).gone]

    @property
    def headline(self) -> str:
        sums = {name: self.lost.sums(name) for name in self.settings}
        lost = [f"“{name}” lost {sums[name].gone:,} of {sums[name].acknowledged:,}" for name in self.losing]
        kept = [f"“{name}”" for name in self.settings if name not in self.losing]
        none = f"{'the others' if lost else 'no setting'} lost {'none' if lost else 'any'}" if kept else ""
        return f"Of the acknowledged records, {', '.join(lost)}{'; ' if lost and none else ''}{none}."

    @property
    def sentence(self) -> str:
        named = [name for k, name in enumerate(self.settings) if not k or name in self.losing]
        named = self.settings if len(named) == len(self.settings) - 1 else named
        parts = []
        for name in named:
            outage, worst = self._outages(name)
            parts.append(
                f"“{name}” lost {self.lost.counted(name, ' acknowledged records')}. Outside the affected region all "
                f"writes stopped for a median of {outage}. The partition that was blocked longest accepted no writes "
                f"for a median of {worst}. The longest outage of a partition was {self._longest([name])}."
            )
        names = [name for name in self.settings if name not in named]
        others = [self.recovered.of(name, "writes") for name in names]
        if others:
            low, high = (end(others, key=lambda each: each.estimate) for end in (min, max))
            limit = "at least " if any(each.at_least for each in others) else ""
            parts.append(
                f"{len(others)} other settings lost no record. With these settings, the median time without any write "
                f"was {low.estimate:.1f} to {limit}{high.estimate:.1f} s, by setting, and the longest outage of a "
                f"partition was {self._longest(names)}."
            )
        return "\n".join(parts)

    def _outages(self, name: str) -> list[str]:
        """Return two medians as text: the outage of all writes, and that of the partition blocked longest."""
        return [self.recovered.of(name, each).formatted_with_interval for each in ("writes", "writes_partition")]

    def _longest(self, names: list[str]) -> str:
        """Say how long the longest outage of a partition was, and in how many episodes one lasted until healing."""
        rows, streams = self.recovered.rows, self.recovered.streams
        rows = rows[rows.setting.isin(names) & rows.writes_partition.notna()]
        own = streams[streams.setting.isin(names) & (streams.quantity == "writes_partition")]
        if own.empty:
            return "unknown"
        longest, cut = own.loc[own.outage_s.idxmax()], int(rows.writes_partition_censored.sum())
        length = f"{'at least ' if longest.censored else ''}{quantity(longest.outage_s, 's')}"
        healing = f"; in {cut} of {count(len(rows), 'episode')} an outage lasted until healing" if cut else ""
        return f"{length} (partition {int(longest.unit)}{healing})"

    @property
    def cautions(self) -> tuple[str, ...]:
        return (*self.lost.cautions, *self.recovered.cautions)

    def table(self) -> pd.DataFrame:
        rows = []
        for name in self.settings:
            sums, outage = self.lost.sums(name), self.recovered.of(name, "writes")
            row = {"setting": name, "acknowledged": int(sums.acknowledged), "lost": int(sums.gone)}
            row |= {"outage_s": outage.estimate, "low_s": outage.low, "high_s": outage.high, "episodes": outage.n}
            rows.append(row)
        return self.abouts.merge(pd.DataFrame(rows), on="setting")

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for name in self.settings:
            writes, partition = self._outages(name)
            row = {"setting": name, "lost": self.lost.counted(name)}
            rows.append(row | {"outage of all writes": writes, "outage of the worst partition": partition})
        return self.abouts.merge(pd.DataFrame(rows), on="setting").astype(str)

    def figure(self) -> go.Figure:
        """Draw the median outage of each setting, with its interval, against the records lost per episode."""
        figure = go.Figure()
        keys = ["run_id", "test_id", "attempt", "setting"]
        points = self.recovered.rows.merge(self.lost.rows[[*keys, "gone", "acknowledged"]], on=keys)
        for k, name in enumerate(self.settings):
            shade = theme.OUTSIDE if name in self.losing else theme.WITHIN
            own, estimate = points[points.setting == name], self.recovered.of(name, "writes")
            middle, symbol = own.gone.mean(), SYMBOLS[k % len(SYMBOLS)]
            marker = {"size": 6, "color": shade, "opacity": 0.45, "symbol": symbol}
            hover = "one episode: %{x:.2f} s, %{y} lost<extra></extra>"
            style = {"mode": "markers", "marker": marker, "showlegend": False, "hovertemplate": hover}
            figure.add_scatter(x=own.writes, y=own.gone, **style)
            label = theme.plain(f"{name}: {int(own.gone.sum()):,} of {int(own.acknowledged.sum()):,} lost")
            marker = {"size": 13, "color": shade, "symbol": symbol}
            primitives.estimate_points(figure, [middle], [estimate], marker=marker, name=label)
            open_ends(figure, [middle], [estimate], 1.04 * points.writes.max(), shade)
        most = max(points.gone.max(), 1)
        figure.update_xaxes(title="outage of all writes outside the affected region (s)", rangemode="tozero")
        figure.update_yaxes(title="acknowledged records lost per episode", range=[-0.05 * most, 1.08 * most])
        figure.update_layout(legend={"orientation": "h", "y": -0.2})
        return theme.finish(
            figure,
            name="time-against-records",
            title=f"{len(self.losing)} of {count(len(self.settings), 'setting')} lost acknowledged records",
            subtitle="Small marker: one episode. Large marker: median outage with its interval, and mean loss. "
            "With fewer than six episodes the interval runs from the smallest to the largest value. Dotted: the "
            "interval has no upper end. Orange: the setting lost acknowledged records.",
            alt=f"Outage against loss per setting. {self}",
            caption=str(self),
            table=self.table(),
        )


def values_of(tables: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, list[str]]:
    """
    Return the outages of a run, one row per episode and quantity, and notes on what they leave out.

    The rows have the columns of `methods.comparison.sides.measured`. A quantity is left out for a setting if an episode
    has no outage, or one that only healing ended. Lost records are only reported in the notes: if one side lost none,
    there is no ratio to compare.
    """
    found, parts, notes = episodes(tables), [], []
    lost, outages = losses(found), recovery(found)
    for name in outages.settings if len(outages.rows) else ():
        own = outages.rows[outages.rows.setting == name].merge(tables["faults"][[*KEY, "block"]], on=KEY)
        notes.append(f"acknowledged records lost under “{name}”: {lost.counted(name)}")
        for key, what in outages.QUANTITIES.items():
            if (own[key] > 0).all() and not own[f"{key}_censored"].any():
                about = {"quantity": f"outage of {what}", "unit": "s", "key": name, "first": name, "second": name}
                values = {"value": own[key], "variance": np.nan, "freedom": np.nan}
                parts.append(own[["run_id", "block"]].assign(**about, **values))
            elif own[key].notna().any():
                notes.append(
                    f"“{name}” has an episode without an outage of {what}, or one that ended only with healing"
                )
    return pd.concat(parts or [pd.DataFrame()], ignore_index=True), notes


def compare_settings(episodes: Episodes, lost: Losses, recovered: Recovery) -> Comparison:
    """Compare the losses and outages of all settings with a fault."""
    firsts = {name: own[0].about for name, own in episodes.with_fault().by_setting().items()}
    rows = [{"setting": name} | {key: _text(about.get(key)) for key in COLUMNS} for name, about in firsts.items()]
    abouts = pd.DataFrame(rows)
    differing = [key for key in COLUMNS if abouts[key].nunique() > 1]
    return Comparison(lost, recovered, abouts[["setting", *differing]])


def _text(value: object) -> str:
    """Format the value of a column: a JSON object as "name=value, ...", a missing value as ""."""
    if pd.isna(value):
        return ""
    if isinstance(value, str) and value.startswith("{"):
        return ", ".join(f"{name}={each}" for name, each in sorted(json.loads(value).items()))
    return str(value)
