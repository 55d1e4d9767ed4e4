"""How far repeated tests of one ordered pair differ."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.formatting import count

from .repeats import Repeats


def differences_of_repeats(result: Repeats, *, note: str = "") -> go.Figure:
    """The share of repeated pairs whose tests differ by no more than a factor."""
    factor = np.sort(result.pairs.factor.to_numpy())
    share = np.arange(1, len(factor) + 1) / len(factor)
    line = {"color": theme.FIT, "shape": "hv", "width": 2.5}
    figure = go.Figure()
    figure.add_scatter(x=factor, y=share, mode="lines", line=line)
    axis = theme.log_axis(factor, "")
    figure.update_xaxes(title="largest over smallest test of a pair (times, log axis)", **axis)
    figure.update_yaxes(title="share of the repeated pairs", range=[0, 1.02], tickformat=".0%")
    column = result.column.replace("_", "-")
    return theme.finish(
        figure,
        name=f"repeated-tests-{column}",
        title=f"Two tests of one ordered pair: {column}",
        subtitle="Share of the ordered pairs tested more than once whose tests differ by no more than this factor.",
        alt=f"Cumulative share of pairs over the factor between repeated tests. {result}",
        caption=f"{count(len(result.pairs), 'ordered pair')} tested more than once. {result.factor.sentence}",
        table=result.pairs,
        note=note,
    )
