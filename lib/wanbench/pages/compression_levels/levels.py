"""Summarise trials by codec and compression level: messages per second, latency and message size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_choice
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import geometric_mean
from wanbench.methods.trials.rates import TrialRates

MEASURES = {
    "records_per_s": ("messages per second", "messages/s"),
    "mean_latency_ms": ("mean ms to acknowledgement", "ms"),
    "bytes_per_record": ("bytes of a message in the log", "bytes"),
}
FAST, SMALL = "records_per_s", "bytes_per_record"
METHOD = "geometric mean of the ratios within blocks; interval from Student's t on their logarithms"
ASSUMPTION = "Blocks are independent, and a disturbance of a block affects all of its trials by the same factor"


@dataclass(frozen=True, repr=False)
class Levels(RowsResult):
    """
    Rate, latency and message size of each setting (a codec at a compression level).

    `rows` has one row per setting: `setting`, `codec`, `level`, `n` (trials), and the geometric mean over trials of
    each column of `MEASURES`. `trials` has one row per trial.
    """

    trials: pd.DataFrame

    TITLE = "Geometric means by codec and level"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Each codec's ratios of its lowest level to its highest: of messages per second, and of message size."""
        return tuple(
            self.ratio(part.setting.iloc[0], part.setting.iloc[-1], of)
            for _, part in self.rows.groupby("codec", sort=False)
            if len(part) > 1
            for of in (FAST, SMALL)
        )

    @property
    def headline(self) -> str:
        if not self.estimates:
            return ""
        faster, larger = (_range(self.estimates[start::2]) for start in (0, 1))
        return (
            f"The lowest level of a codec sends {faster} as many messages per second as its highest level, and its "
            f"messages are {larger} as large."
        )

    @property
    def sentence(self) -> str:
        faster, larger = self.estimates[::2], self.estimates[1::2]
        parts = "; ".join(_compared(rate, size) for rate, size in zip(faster, larger, strict=True))
        if not parts:
            return "No codec has two levels."
        return f"Lowest against highest level: {parts} (95 % intervals in brackets; {faster[0].basis} of each)."

    def formatted_table(self) -> pd.DataFrame:
        names = {name: label for name, (label, _) in MEASURES.items()}
        return super().formatted_table().drop(columns=["codec", "level"]).rename(columns=names | {"n": "trials"})

    def ratio(self, setting: str, over: str, of: str = FAST) -> Estimate:
        """
        Estimate the ratio of the column `of` with `setting` to the same column with the setting `over`.

        Only blocks that measured both settings are used.

        Raises
        ------
        ParameterError
            `setting`, `over` or `of` (a key of `MEASURES`) is unknown.
        """
        label, _ = MEASURES[check_choice("measure", of, MEASURES)]
        for name in (setting, over):
            check_choice("setting", name, self.rows.setting)
        pairs = self.trials.pivot_table(index="block", columns="setting", values=of)[[setting, over]].dropna()
        return geometric_mean(
            pairs[setting] / pairs[over],
            0.95,
            quantity=f"{label}: {setting} over {over}",
            claim=f"With “{setting}”, {label} are {{}} those with “{over}”",
            method=METHOD,
            assumption=ASSUMPTION,
        )

    def figure(self) -> go.Figure:
        """Draw message size against messages per second: one line per codec, one point per level."""
        figure = go.Figure()
        for k, (codec, part) in enumerate(self.rows.groupby("codec", sort=False)):
            shade = theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)]
            figure.add_scatter(
                x=part[FAST],
                y=part[SMALL],
                mode="lines+markers+text",
                text=part.level,
                textposition=("top center", "bottom center")[k % 2],
                name=codec,
                line={"color": shade},
                marker={"size": 9},
                hovertemplate=codec + " %{text}: %{x:,.0f} messages/s, %{y:,.0f} bytes<extra></extra>",
            )
        figure.update_xaxes(title="messages per second (log axis)", **theme.log_axis(self.rows[FAST], ""))
        figure.update_yaxes(title="bytes of a message in the log (log axis)", **theme.log_axis(self.rows[SMALL], ""))
        return theme.finish(
            figure,
            name="size-against-rate",
            title=theme.headline(self.estimates[0].sentence, "What a compression level costs and saves"),
            subtitle="Further right is faster, lower is smaller. Numbers: levels. Points: geometric means of trials.",
            alt=f"Size of a message against messages per second, by codec and level. {self.sentence}",
            caption=str(self),
            table=self.rows,
        )


def _range(several: tuple[Estimate, ...]) -> str:
    low, high = (of(several, key=float).formatted for of in (min, max))
    return f"{low.removesuffix(' times')} to {high}"


def _compared(rate: Estimate, size: Estimate) -> str:
    low, _, high = rate.quantity.partition(": ")[2].partition(" over ")
    return f"“{low}” sends {rate.with_ends} the messages per second of “{high}”, each {size.with_ends} as large"


def by_level(rates: TrialRates) -> Levels:
    """
    Summarise trials by setting; a setting is a codec and a level, such as "gzip 6", or "none".

    Raises
    ------
    ParameterError
        `rates` has no trial.
    """
    trials = rates.rates.copy()
    if trials.empty:
        raise ParameterError("rates has no trial; allowed: at least one that was measured.")
    trials[SMALL] = trials.log_bytes_per_s / trials.records_per_s
    trials[["codec", "level"]] = trials.setting.str.partition(" ")[[0, 2]].to_numpy()
    groups = trials.groupby(["codec", "level", "setting"], as_index=False)
    rows = groups.agg(n=("test_id", "size"), **{name: (name, lambda v: np.exp(np.log(v).mean())) for name in MEASURES})
    order = pd.to_numeric(rows.level, errors="coerce").fillna(0)
    rows = rows.assign(order=order).sort_values(["codec", "order"]).drop(columns="order").reset_index(drop=True)
    return Levels(rows=rows, trials=trials)
