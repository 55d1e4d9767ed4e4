"""Slices through a response surface at its best setting."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import primitives, theme
from wanbench.formatting import percent
from wanbench.methods.factorial.terms import UNITS, word

from .surface import Surface
from .surface_terms import Axis

STEPS = 41
"""Points of a slice along a range."""
AMONG = theme.WITHIN
COLUMNS = 3
"""Panels in a row: few enough for their tick labels."""
ROW_PX = 240


def surface(result: Surface, *, note: str = "") -> go.Figure:
    """A panel per factor: the fitted response along that factor, all others held at the best setting."""
    n_rows = -(-len(result.axes) // COLUMNS)
    n_columns = min(len(result.axes), COLUMNS)
    titles = [theme.plain(word(axis.name)) for axis in result.axes]
    figure = make_subplots(n_rows, n_columns, subplot_titles=titles, shared_yaxes=True, vertical_spacing=0.35 / n_rows)
    tables = []
    for k, axis in enumerate(result.axes):
        cell = {"row": k // COLUMNS + 1, "col": k % COLUMNS + 1}
        values = list(axis.levels) or axis.decode(np.linspace(-1, 1, STEPS))
        settings = pd.DataFrame({name: [value] * len(values) for name, value in result.best_setting.items()})
        settings[axis.name] = values
        slice_ = result.at(settings)
        tables.append(slice_.assign(along=axis.name))
        _add_slice(figure, axis, slice_, result, cell)
        primitives.reference_line(figure, y=result.best.low, **cell)
    unit = f" ({result.unit})" if result.unit else ""
    table = pd.concat(tables, ignore_index=True)
    axis = theme.log_axis([*table.low, *table.high], result.unit)
    figure.update_yaxes(**axis)
    figure.update_yaxes(title=theme.plain(f"{word(result.response)}{unit}, log axis"), col=1)
    figure = theme.finish(
        figure,
        name="response-surface",
        title=f"Around the best setting: {word(result.response)}",
        subtitle=f"Panels: the fitted surface along one factor, all others as in the best setting (diamond); bands: "
        f"{percent(result.level)} simultaneous intervals. Dashed: the lower end at the best setting.",
        alt=f"Slices through a response surface. {result}",
        caption=str(result),
        table=table,
        note=note,
        headroom_px=theme.PANEL_TITLES_PX,
    )
    return figure.update_layout(height=theme.HEIGHT_PX + ROW_PX * (n_rows - 1), showlegend=False)


def _add_slice(figure: go.Figure, axis: Axis, slice_: pd.DataFrame, result: Surface, cell: dict) -> None:
    best = result.best_setting[axis.name]
    here = {"x": [best], "y": [result.best.estimate], "mode": "markers", "hoverinfo": "skip"}
    diamond = {"marker": {"size": 12, "symbol": "diamond", "color": theme.OUTSIDE}}
    if axis.levels:
        marker = {"size": 9, "color": AMONG}
        ends = (slice_.fitted, slice_.low, slice_.high)
        primitives.interval_points(figure, slice_[axis.name], *ends, marker=marker, vertical=True, **cell)
        figure.add_scatter(**here, **diamond, **cell)
        return
    primitives.band(figure, slice_[axis.name], slice_.low, slice_.high, **cell)
    line = {"color": theme.FIT, "width": 2}
    hover = "%{x:.4g}: %{y:.4g}<extra></extra>"
    figure.add_scatter(x=slice_[axis.name], y=slice_.fitted, mode="lines", line=line, hovertemplate=hover, **cell)
    figure.add_scatter(**here, **diamond, **cell)
    if axis.log:
        figure.update_xaxes(**theme.log_axis(slice_[axis.name], UNITS.get(axis.name, ""), max_ticks=5), **cell)
