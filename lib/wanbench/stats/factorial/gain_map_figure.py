"""Where halving the delay gains more than doubling the rate: a map of a fitted factorial experiment."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import ceil, log2

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...errors import ParameterError
from ...figures import theme
from ...formatting import percent, quantity
from .result import PATH, UNITS, Factorial

MOST_PANELS = 8
COLUMNS = 2
SCALE = [[0.0, theme.OUTSIDE], [0.5, "#FFFFFF"], [1.0, theme.WITHIN]]
ROW_PX = 300


def thesis_map(found: Factorial, levels: Mapping[str, object] | None = None, *, note: str = "") -> go.Figure:
    """
    The gain over delay and rate, a panel per combination of the other factors' levels; crosses where it is undecided.

    Parameters
    ----------
    levels : mapping
        Levels to show of some factors. Without, jitter_ms and loss are at their lowest, and all of the others' are
        shown.

    Raises
    ------
    ParameterError
        Without a thesis, for a level that the experiment does not have, or more than 8 panels.
    """
    if found.thesis is None:
        raise ParameterError(f"{found.delay} and {found.rate} are not both factors with a logarithm; no map")
    space, fixed = found.space, dict(levels or {})
    for name in found.others:
        if name in PATH:
            fixed.setdefault(name, space[name].min())
    for name, value in fixed.items():
        there = list(space[name].unique()) if name in found.others else []
        if value not in there:
            listed = ", ".join(map(str, there if there else found.others))
            raise ParameterError(f"{name}={value!r}: there are {listed}")
        space = space[space[name] == value]
    free = [name for name in found.others if name not in fixed]
    panels = list(product(*(sorted(space[name].unique()) for name in free)))
    if len(panels) > MOST_PANELS:
        raise ParameterError(f"{len(panels)} panels; name levels of some factors, of {', '.join(free)}")
    columns = min(COLUMNS, len(panels))
    rows = ceil(len(panels) / columns)
    titles = [
        ", ".join(f"{theme.plain(n)} {_said(n, v)}" for n, v in zip(free, each, strict=True))
        for each in panels
    ]
    figure = make_subplots(
        rows=rows, cols=columns, subplot_titles=titles, shared_xaxes=True, shared_yaxes=True,
        horizontal_spacing=0.06, vertical_spacing=0.12 if rows > 1 else 0.0,
    )  # fmt: skip
    reach = max(float(np.abs(np.log2(space.gain)).max()), 0.25)
    for k, each in enumerate(panels):
        part = space
        for name, value in zip(free, each, strict=True):
            part = part[part[name] == value]
        _panel(figure, found, part, reach, 1 + k // columns, 1 + k % columns, k == 0)
    for axis, name, update in (
        ("x", found.delay, figure.update_xaxes),
        ("y", found.rate, figure.update_yaxes),
    ):
        update(**theme.log_axis(space[name], UNITS.get(name, ""), 6))
        last = {"row": rows} if axis == "x" else {"col": 1}
        update(title=theme.plain(f"{name} (log axis)"), **last)
    figure.update_layout(height=160 + ROW_PX * rows)
    shown = ", ".join(f"{name} {_said(name, value)}" for name, value in fixed.items())
    level = percent(found.thesis.level)
    return theme.finish(
        figure,
        name="thesis-map",
        title="Halved delay over doubled rate: which gains more?",
        subtitle=f"Blue, above 1: latency matters more; orange: bandwidth. Crosses: undecided at {level} for the whole "
        f"space together.{f' At {shown}.' if shown else ''}",
        alt=f"Map of gains over delay and rate. {found.verdict()} {found.region_sentence()}",
        caption=found.region_sentence(),
        table=space,
        note=note,
        headroom_px=24,
    )


def _panel(
    figure: go.Figure, found: Factorial, part: pd.DataFrame, reach: float, row: int, col: int, bar: bool
) -> None:
    wide = part.pivot(index=found.rate, columns=found.delay, values="gain")
    ends = [
        part.pivot(index=found.rate, columns=found.delay, values=name) for name in ("gain", "low", "high")
    ]
    ticks = [2.0**power for power in range(-ceil(reach), ceil(reach) + 1)]
    figure.add_heatmap(
        x=wide.columns,
        y=wide.index,
        z=np.log2(wide.to_numpy()),
        zmin=-reach,
        zmax=reach,
        colorscale=SCALE,
        showscale=bar,
        colorbar={
            "title": "times",
            "tickvals": [log2(tick) for tick in ticks],
            "ticktext": [f"{tick:.3g}" for tick in ticks],
        },
        customdata=np.dstack(ends),
        hovertemplate="%{x:.4g}, %{y:.4g}: %{customdata[0]:.3g} times (%{customdata[1]:.3g} to %{customdata[2]:.3g})"
        "<extra></extra>",
        row=row,
        col=col,
    )  # fmt: skip
    open_ = part[part.verdict == "undecided"]
    figure.add_scatter(
        x=open_[found.delay],
        y=open_[found.rate],
        mode="markers",
        marker={"symbol": "x-thin", "size": 8, "line": {"width": 1.2, "color": theme.MUTED}},
        hoverinfo="skip",
        name="undecided",
        showlegend=False,
        row=row,
        col=col,
    )


def _said(name: str, value) -> str:
    if isinstance(value, str):
        return theme.plain(value)
    return quantity(float(value), UNITS.get(name, "")) if value else "0"
