"""Where halving the delay gains more than doubling the rate: a map of a fitted factorial experiment."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import ceil

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_choice
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.formatting import percent
from wanbench.methods.factorial.terms import UNITS, level_label, word

from .result import PATH, Factorial

MAX_PANELS = 8
"""More panels than this would be too small to read."""
COLUMNS = 2
COLOURS = [[0.0, theme.OUTSIDE], [0.5, "#FFFFFF"], [1.0, theme.WITHIN]]
MIN_LOG2_GAIN = 0.25
"""The colour scale reaches at least this far, so that small differences do not look large."""
ROW_PX = 300


def gain_map(fit: Factorial, levels: Mapping[str, object] | None = None, *, note: str = "") -> go.Figure:
    """
    The gain over delay and rate, a panel per combination of the other factors' levels; crosses at undecided points.

    Parameters
    ----------
    levels : mapping
        Levels of some factors to show; for the others see `Factorial.map`.

    Raises
    ------
    ParameterError
        If the fit has no thesis, for a level that the experiment does not have, or for more than 8 panels.
    """
    if fit.thesis is None:
        raise ParameterError(f"{fit.delay} and {fit.rate} are not both factors with a logarithm; no map")
    grid, fixed = fit.grid, dict(levels or {})
    fixed = {name: grid[name].min() for name in fit.others if name in PATH} | fixed
    for name, level in fixed.items():
        check_choice("factor", name, fit.others)
        grid = grid[grid[name] == check_choice(name, level, grid[name].unique().tolist())]
    free = [name for name in fit.others if name not in fixed]
    panels = list(product(*(sorted(grid[name].unique()) for name in free)))
    if len(panels) > MAX_PANELS:
        raise ParameterError(f"{len(panels)} panels, more than {MAX_PANELS}; give levels of some of {', '.join(free)}")
    columns = min(COLUMNS, len(panels))
    rows = ceil(len(panels) / columns)
    titles = [
        ", ".join(
            theme.plain(f"{word(name)} {level_label(name, level)}") for name, level in zip(free, panel, strict=True)
        )
        for panel in panels
    ]
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=titles,
        shared_xaxes=True,
        shared_yaxes=True,
        horizontal_spacing=0.06,
        vertical_spacing=0.12 if rows > 1 else 0.0,
    )
    reach = max(float(np.abs(np.log2(grid.gain)).max()), MIN_LOG2_GAIN)
    for k, panel in enumerate(panels):
        part = grid[(grid[free] == list(panel)).all(axis=1)]
        _add_panel(figure, fit, part, reach, bar=k == 0, row=1 + k // columns, col=1 + k % columns)
    figure.update_xaxes(**theme.log_axis(grid[fit.delay], UNITS.get(fit.delay, ""), 6))
    figure.update_xaxes(title=theme.plain(f"{word(fit.delay)} (log axis)"), row=rows)
    figure.update_yaxes(**theme.log_axis(grid[fit.rate], UNITS.get(fit.rate, ""), 6))
    figure.update_yaxes(title=theme.plain(f"{word(fit.rate)} (log axis)"), col=1)
    figure.update_layout(height=160 + ROW_PX * rows)
    shown = ", ".join(f"{word(name)} {level_label(name, level)}" for name, level in fixed.items())
    return theme.finish(
        figure,
        name="thesis-map",
        title="Halved delay over doubled rate: which gains more?",
        subtitle="Blue, above 1: latency matters more; orange: bandwidth. Crosses: undecided at "
        f"{percent(fit.thesis.level)} for the whole space together.{f' At {shown}.' if shown else ''}",
        alt=f"Map of gains over delay and rate. {fit.verdict()} {fit.shares_sentence()}",
        caption=fit.shares_sentence(),
        table=grid,
        note=note,
        headroom_px=24,
    )


def _add_panel(figure: go.Figure, fit: Factorial, part: pd.DataFrame, reach: float, *, bar: bool, **cell) -> None:
    gain, low, high = (part.pivot(index=fit.rate, columns=fit.delay, values=name) for name in ("gain", "low", "high"))
    powers = list(range(-ceil(reach), ceil(reach) + 1))
    figure.add_heatmap(
        x=gain.columns,
        y=gain.index,
        z=np.log2(gain.to_numpy()),
        zmin=-reach,
        zmax=reach,
        colorscale=COLOURS,
        showscale=bar,
        colorbar={"title": "times", "tickvals": powers, "ticktext": [f"{2.0**power:.3g}" for power in powers]},
        customdata=np.dstack([gain, low, high]),
        hovertemplate="%{x:.4g}, %{y:.4g}: %{customdata[0]:.3g} times (%{customdata[1]:.3g} to %{customdata[2]:.3g})"
        "<extra></extra>",
        **cell,
    )
    undecided = part[part.verdict == "undecided"]
    figure.add_scatter(
        x=undecided[fit.delay],
        y=undecided[fit.rate],
        mode="markers",
        marker={"symbol": "x-thin", "size": 8, "line": {"width": 1.2, "color": theme.MUTED}},
        hoverinfo="skip",
        name="undecided",
        showlegend=False,
        **cell,
    )
