"""The factor by which a pair deviates from its line on distance."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.formatting import percent

from .dots import bound, dots
from .scatter import Scatter


def factors_off_the_line(result: Scatter, *, note: str = "") -> go.Figure:
    """The factor by which the median pair deviates from its line, for RTT and for throughput."""
    frame = result.table().iloc[:2]
    figure = dots(["RTT", "throughput"], frame.estimate, frame.low, frame.high, "median pair")
    bound(figure, 1.0, "on the line")
    figure.update_xaxes(title="factor by which a pair misses its line (times)")
    return theme.finish(
        figure,
        name="scatter-about-lines",
        title="How far pairs lie from their line on distance",
        subtitle=f"Dots: the median pair; bars: {percent(result.rtt.level)} intervals by place.",
        alt=f"Two factors with intervals. {result}",
        caption=result.ratio.sentence,
        table=frame,
        note=note,
    )
