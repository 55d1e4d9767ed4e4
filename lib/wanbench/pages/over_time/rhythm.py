"""Estimate how RTT or throughput differs between hours of the day (the units are days) and between weekdays (weeks)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme
from wanbench.figures.primitives import interval_points, reference_line
from wanbench.formatting import count
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import geometric_mean

from .pair_changes import PAIR, PairChanges
from .values import MEASURES

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MIN_UNITS = 4  # With fewer days, an interval by Student's t is wider than any rhythm.
METHOD = "medians over pairs per day; geometric mean over days, interval by Student's t, simultaneous (Bonferroni)"
ASSUMPTION = "How hours of a day, or days of a week, differ is independent of other days or weeks; all pairs are pooled"


@dataclass(frozen=True, repr=False)
class Rhythm(RowsResult):
    """
    The ratio of each hour to the mean of the day, and of each weekday to the mean of the week.

    `rows` has one row per hour of the day (UTC) and per weekday: `part` ("hour" or "weekday"), `at` (which one),
    `ratio` with its interval `low` to `high` (simultaneous over all hours, or all weekdays), `n` (days, for an hour, or
    weeks, for a weekday).
    """

    measure: str
    estimates: tuple[Estimate, ...] = ()  # pyright: ignore[reportIncompatibleMethodOverride]  # a field

    TITLE = "Hours of the day and weekdays"

    @property
    def sentence(self) -> str:
        name = MEASURES[self.measure][0]
        texts = []
        for part, one in (("hour", "an hour of the day"), ("weekday", "a weekday")):
            of = self.rows[self.rows.part == part]
            if len(of) < 2:
                texts.append(f"The tests do not show whether the {name} depends on {one}.")
                continue
            apart = of[(of.low > 1) | (of.high < 1)]
            low, high, at = of.loc[of.ratio.idxmin()], of.loc[of.ratio.idxmax()], "at" if part == "hour" else "on"
            texts.append(
                f"By {part}, the {name} goes from {_percent(low)} {at} {low['at']} to {_percent(high)} {at} "
                f"{high['at']}; {len(apart)} of {count(len(of), part)} differ from the mean (95 % intervals)."
            )
        return " ".join(texts)

    def formatted_table(self) -> None:
        """Return None, because the figure has the values."""

    def figure(self) -> go.Figure:
        """Draw the ratios with their intervals: hours left, weekdays right."""
        figure = make_subplots(cols=2, subplot_titles=["hour of the day (UTC)", "weekday"], shared_yaxes=True)
        for col, part in enumerate(("hour", "weekday"), 1):
            of = self.rows[self.rows.part == part]
            ends = (of.ratio, of.low, of.high)
            where = {"row": 1, "col": col, "showlegend": False}
            interval_points(figure, of["at"], *ends, marker={"color": theme.FIT, "size": 7}, vertical=True, **where)
        reference_line(figure, y=1.0)
        figure.update_yaxes(title="ratio to the mean", col=1)
        name = MEASURES[self.measure][0]
        return theme.finish(
            figure,
            name=f"rhythm-of-{name.lower()}",
            title=f"{name} by hour and by weekday",
            subtitle="Ratio to the mean of the day or week; median over pairs. Bars: simultaneous 95 % intervals.",
            alt=f"{name} by hour of the day and by weekday. {self.sentence}",
            caption=str(self),
            table=self.rows,
            headroom_px=theme.PANEL_TITLES_PX,
        )


def rhythm(values: pd.DataFrame, changes: PairChanges) -> Rhythm:
    """
    Estimate the ratio of each hour to the mean of its day, and of each weekday to the mean of its week.

    Every value is first divided by the level of its pair at that time (from `changes`), so that a change of level is
    not mistaken for a rhythm.
    """
    levels = pd.concat([one.rows.assign(**dict(zip(PAIR, pair, strict=True))) for pair, one in changes.series.items()])
    levels = levels.rename(columns={"since": "at_utc"})[[*PAIR, "at_utc", "level"]]
    measured = values[values[changes.measure] > 0]
    both = [part.astype({"at_utc": "datetime64[us, UTC]"}).sort_values("at_utc") for part in (measured, levels)]
    joined = pd.merge_asof(*both, on="at_utc", by=PAIR).dropna(subset="level")
    logs, at = np.log(joined[changes.measure] / joined.level), joined.at_utc
    hours = logs.groupby([at.dt.floor("D"), at.dt.hour.rename("hour")]).median().unstack()
    days = logs.groupby(at.dt.floor("D")).median()
    monday = days.index - pd.to_timedelta(days.index.day_of_week, unit="D")
    weeks = days.groupby([monday, days.index.day_of_week]).median().unstack()
    parts = {
        "hour": hours.sub(hours.mean(axis=1), axis=0).rename(columns=lambda hour: f"{hour:02d} h"),
        "weekday": weeks.dropna().sub(weeks.dropna().mean(axis=1), axis=0).rename(columns=dict(enumerate(DAYS))),
    }
    found = [(part, name, column.dropna()) for part, table in parts.items() for name, column in table.items()]
    found = [one for one in found if len(one[2]) >= MIN_UNITS]
    estimates = tuple(
        geometric_mean(
            np.exp(column),
            1 - 0.05 / parts[part].shape[1],
            quantity=f"{MEASURES[changes.measure][0]} at {name}, ratio to the {'day' if part == 'hour' else 'week'}",
            claim=f"{MEASURES[changes.measure][0]} at {name} is {{}} the mean",
            method=METHOD,
            assumption=ASSUMPTION,
        )
        for part, name, column in found
    )
    rows = [
        {"part": part, "at": name, "ratio": one.estimate, "low": one.low, "high": one.high, "n": one.n}
        for (part, name, _), one in zip(found, estimates, strict=True)
    ]
    return Rhythm(pd.DataFrame(rows, columns=["part", "at", "ratio", "low", "high", "n"]), changes.measure, estimates)


def _percent(row: pd.Series) -> str:
    return f"{100 * (row.ratio - 1):+.1f} % ({100 * (row.low - 1):+.1f} to {100 * (row.high - 1):+.1f})"
