"""Find when the level of every pair changed, and since when its last level has held."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_choice
from wanbench.errors import MissingDataError
from wanbench.figures import theme
from wanbench.formatting import count, interval, number, quantity
from wanbench.methods.result import Estimate, RowsResult, text_table

from .levels import Changes, find_changes, medians_per_step
from .values import MEASURES

PAIR = ["from_region", "to_region"]
# Number of false alarms in a year of days, in 200 simulated pair-years (data/validity/changes.csv; a test compares).
FALSE_PER_YEAR = {"rtt_ms": 0.035, "throughput_bps": 0.07}
STEPS = {"1D": "a day", "1h": "an hour"}
MAX_PANELS, COLUMNS, PANEL_PX = 6, 2, 210
MAX_ROWS = 40  # Rows of the table on a page; the figure's CSV has all.


@dataclass(frozen=True, repr=False)
class PairChanges(RowsResult):
    """
    Changes of the level of one measure, RTT or throughput, for all ordered pairs.

    `rows` has one row per pair, the latest change first: `steps` (of time, with a value), `changes` (their number),
    `valid_since` (start of the last level), `level` (the last one, in ms or bit/s) and `ratio`, `low`, `high` of the
    last change. `series` has the `Changes` of each pair.
    """

    measure: str
    step: str
    series: dict[tuple[str, str], Changes]

    TITLE = "The last level of each pair, and since when it has held"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The ratio of the new to the old level at every change of every pair, latest first."""
        every = [
            (since, replace(one, quantity=f"{MEASURES[self.measure][0]} from {pair[0]} to {pair[1]}, {one.quantity}"))
            for pair, changes in self.series.items()
            for since, one in zip(changes.rows.since[1:], changes.estimates, strict=True)
        ]
        return tuple(one for _, one in sorted(every, key=lambda item: item[0], reverse=True))

    @property
    def changed(self) -> pd.DataFrame:
        """The rows of pairs with a change."""
        return self.rows[self.rows.changes > 0]

    @property
    def headline(self) -> str:
        name, since = MEASURES[self.measure][0], self._date(self.rows.valid_since.max())
        if self.changed.empty:
            return f"The {name} of no pair changed for good since {since}."
        pairs = f"{len(self.changed)} of {count(len(self.rows), 'pair')}"
        return f"The {name} of {pairs} changed for good; no pair has changed since {since}."

    @property
    def sentence(self) -> str:
        name = MEASURES[self.measure][0]
        text = (
            f"The {name} changed for good in {len(self.changed)} of {count(len(self.rows), 'pair')} "
            f"({count(int(self.rows.changes.sum()), 'change')}, {self.rows.steps.sum():,} medians of {self._step})."
        )
        if self.changed.empty:
            return text
        last = self.changed.iloc[0]
        ratio, ends = interval(last.ratio, last.low, last.high, "times")
        return (
            f"{text} The latest was on {self._date(last.valid_since)}, from {last.from_region} to {last.to_region}: "
            f"{ratio} the level before (95 % interval {ends})."
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        expected = FALSE_PER_YEAR[self.measure] * self.rows.steps.sum() / 365
        short = sum(one.too_short for one in self.series.values())
        notes = (
            [f"about {number(expected, 2)} changes would be found by chance if nothing had changed"]
            if expected >= 0.5
            else []
        )
        if short:
            notes.append(f"{count(short, 'pair')} had too few values to look for changes")
        return (*notes, *super().cautions)

    def formatted_table(self) -> pd.DataFrame:
        unit = MEASURES[self.measure][1]
        rows = self.rows.head(MAX_ROWS).copy()
        rows["valid_since"] = [self._date(at) for at in rows.valid_since]
        rows["level"] = [quantity(value, unit) for value in rows.level]
        names = {"from_region": "from", "to_region": "to", "valid_since": "valid since", "ratio": "last change (times)"}
        return text_table(rows).rename(columns=names)

    @property
    def _step(self) -> str:
        return STEPS.get(self.step, self.step)

    def _date(self, at: pd.Timestamp) -> str:
        return f"{at:%Y-%m-%d}" if pd.Timedelta(self.step) >= pd.Timedelta("1D") else f"{at:%Y-%m-%d %H:%M:%S} UTC"

    def figure(self) -> go.Figure:
        """Draw the series of the pairs with the largest changes, each with its levels."""
        largest = {pair: np.abs(np.log(of.rows.ratio.dropna())).max() for pair, of in self.series.items()}
        shown = sorted(largest, key=lambda pair: -np.nan_to_num(largest[pair]))[:MAX_PANELS]
        name, unit = MEASURES[self.measure]
        lines = -(-len(shown) // COLUMNS)
        titles = [theme.plain(f"{start} to {end}") for start, end in shown]
        figure = make_subplots(rows=lines, cols=COLUMNS, subplot_titles=titles, vertical_spacing=0.3 / lines)
        for k, pair in enumerate(shown):
            where, of = {"row": k // COLUMNS + 1, "col": k % COLUMNS + 1, "showlegend": False}, self.series[pair]
            figure.add_scatter(
                x=of.values.index, y=of.values, mode="markers", marker={"size": 3, "color": theme.MUTED}, **where
            )
            for row in of.rows.itertuples():
                style = {"color": theme.FIT, "width": 3}
                figure.add_scatter(x=[row.since, row.until], y=[row.level] * 2, mode="lines", line=style, **where)
        figure.update_yaxes(title=unit)
        figure.update_xaxes(tickangle=0, nticks=4)
        figure.update_layout(height=lines * PANEL_PX + 150)
        return theme.finish(
            figure,
            name=f"changes-of-{name.lower()}",
            title=f"{name} over time, with its levels",
            subtitle=f"The {count(len(shown), 'pair')} with the largest changes. Points are medians of "
            f"{self._step}; lines are levels.",
            alt=f"{name} over time for {len(shown)} pairs. {self.sentence}",
            caption=str(self),
            table=self.rows,
            headroom_px=theme.PANEL_TITLES_PX,
        )


def changes_of_pairs(values: pd.DataFrame, measure: str = "rtt_ms", *, step: str = "1D") -> PairChanges:
    """
    Find the changes of level of every ordered pair.

    Parameters
    ----------
    values : DataFrame
        One row per test (`values_of_tests`).
    measure : "rtt_ms" or "throughput_bps"
    step : str
        Length of a step of time, such as "1D"; the tests of a pair within a step count as one value, their median.

    Raises
    ------
    MissingDataError
        No test has a value of this measure.
    """
    measured = values[values[check_choice("measure", measure, MEASURES)] > 0]
    if measured.empty:
        raise MissingDataError(f"No test has a {MEASURES[measure][0]}.")
    series, rows = {}, []
    for pair, part in measured.groupby(PAIR):
        series[pair] = found = find_changes(medians_per_step(part.at_utc, part[measure], step), step=step)
        last = found.rows.iloc[-1]
        row = {"steps": len(found.values), "changes": len(found.rows) - 1}
        row |= {"valid_since": last.since, "level": last.level}
        rows.append(dict(zip(PAIR, pair, strict=True)) | row | dict(last[["ratio", "low", "high"]]))
    frame = pd.DataFrame(rows).sort_values(["valid_since", *PAIR], ascending=[False, True, True], ignore_index=True)
    return PairChanges(frame, measure, step, series)
