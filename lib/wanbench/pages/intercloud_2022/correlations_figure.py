"""One correlation over several selections of rows."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.formatting import count

from .correlations import QUANTITIES, Correlations
from .dots import bound, dots


def r_by_selection(result: Correlations, *, note: str = "") -> go.Figure:
    """The correlation with distance over each selection, with its interval, and the claimed one."""
    rows = result.table()
    figure = dots(rows.selection, rows.r_pairs, rows.low, rows.high, "over unordered pairs")
    marker = {"color": theme.OUTSIDE, "size": 10, "symbol": "diamond-open", "line": {"width": 2}}
    figure.add_scatter(x=rows.r_rows, y=np.arange(len(rows)), mode="markers", marker=marker, name="over rows")
    bound(figure, result.claimed, f"claimed: {result.claimed:g}")
    name = QUANTITIES[result.column]
    figure.update_xaxes(title=f"correlation of {name} with distance (Pearson r)")
    return theme.finish(
        figure,
        name=f"correlation-by-reading-{result.column.partition('_')[0]}",
        title=f"{name} against distance: the correlation by selection of rows",
        subtitle="Filled: over unordered pairs, bar: 95 % interval by place. Open: over unchanged rows.",
        alt=f"Correlations with distance over {count(len(rows), 'selection')} of the same rows. {result}",
        caption=result.sentence,
        table=rows,
        note=note,
    )
