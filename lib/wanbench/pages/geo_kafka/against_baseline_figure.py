"""Every setting against the baseline: its trials, its ratio, and the intervals."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import primitives, theme
from wanbench.formatting import percent, quantity

from .against_baseline import AgainstBaseline

SHADES = {"higher": theme.WITHIN, "lower": theme.OUTSIDE, "not shown": theme.UNKNOWN, "baseline": theme.FIT}
SYMBOLS = {"higher": "triangle-right", "lower": "triangle-left", "not shown": "circle", "baseline": "diamond"}


def against_baseline(result: AgainstBaseline, *, note: str = "") -> go.Figure:
    """One row per setting: small points are trials, thick bars individual intervals, thin bars simultaneous ones."""
    rows, trials = result.rows, result.trials
    at = {name: k for k, name in enumerate(rows.setting)}
    middle = rows["mean"].iloc[0]
    figure = go.Figure()
    figure.add_scatter(
        x=trials[result.response] / middle,
        y=trials[result.by].map(at).to_numpy() + theme.spread(len(trials), 0.3),
        mode="markers",
        name="trials",
        marker={"size": 5, "color": theme.LIGHT, "opacity": 0.6},
        hovertemplate="one trial: %{x:.3g} times<extra></extra>",
    )
    for verdict, part in rows.groupby("verdict", sort=False):
        style = {"marker": {"size": 10, "color": SHADES[verdict], "symbol": SYMBOLS[verdict]}}
        places = [at[name] for name in part.setting]
        alone = {"bar": {"thickness": 5, "width": 0}, "showlegend": False, "hoverinfo": "skip"}
        primitives.interval_points(figure, places, part.ratio, part.single_low, part.single_high, **style, **alone)
        text = [quantity(row.ratio, "times", row.low, row.high) for row in part.itertuples()]
        named = {"not shown": "no difference shown"}.get(verdict, verdict)
        primitives.interval_points(figure, places, part.ratio, part.low, part.high, text=text, name=named, **style)
    primitives.label_rows(figure, [theme.plain(name) for name in rows.setting])
    primitives.reference_line(figure, x=1)
    ends = rows[["ratio", "low", "high"]].to_numpy(dtype=float).ravel()
    ends = [*ends[np.isfinite(ends)], *(trials[result.response] / middle)]
    figure.update_xaxes(
        title=theme.plain(f"{result.response}, times that of {result.baseline} (log axis)"), **theme.log_axis(ends, "")
    )
    level = percent(result.level)
    return theme.finish(
        figure,
        name="against-baseline",
        title=f"{result.response} against {result.baseline}",
        subtitle=f"Small points: trials. Bars: {level} intervals from the scatter pooled over all settings; thick for "
        "a setting alone, thin for all together. Dashed: as the baseline.",
        alt=f"Settings against a baseline. {result}",
        caption=str(result),
        table=rows,
        note=note,
    )
