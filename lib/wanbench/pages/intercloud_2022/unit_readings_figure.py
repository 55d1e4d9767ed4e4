"""The highest rate of each sender under each reading of a unit."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.figures.primitives import reference_line

from .unit_readings import UnitReadings


def max_rate_over_limit(result: UnitReadings, *, note: str = "") -> go.Figure:
    """The highest rate of each sender under each reading, over the limit of its instance."""
    figure = go.Figure()
    for sender, part in result.rows.groupby("sender", sort=False):
        figure.add_bar(
            y=[theme.plain(reading) for reading in part.reading],
            x=part.share_of_limit,
            orientation="h",
            name=f"from {theme.cloud_name(sender)}",
            marker={"color": theme.colour(sender)},
            hovertemplate="%{y}<br>%{x:.2f} times the limit<extra></extra>",
        )
    reference_line(figure, x=1.0)
    figure.update_xaxes(
        title="highest rate over the instance's limit (times, log axis)",
        **theme.log_axis([*result.rows.share_of_limit, 0.5, 1], ""),
    )
    figure.update_yaxes(autorange="reversed")
    return theme.finish(
        figure,
        name=f"column-readings-{result.column.lower().replace('_', '-')}",
        title=f"What {theme.plain(result.column)} can mean",
        subtitle="Bars: the highest value of each sender, read in each unit. Beyond the dashed line it is impossible.",
        alt=f"Highest rates over the limits of the senders' instances. {result}",
        caption=result.sentence,
        table=result.rows,
        note=note,
    )
