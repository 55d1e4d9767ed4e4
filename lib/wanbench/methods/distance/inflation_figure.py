"""Path inflation by pair of clouds."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.figures.primitives import estimate_points, reference_line
from wanbench.formatting import count, percent

from .inflation import ALL, Inflation
from .pair_points import FEW_PAIRS, POINTS, pair_labels


def draw_inflation(inflation: Inflation, *, note: str = "") -> go.Figure:
    """RTT over the round trip of light in fibre: every pair, per pair of clouds, with the median's interval."""
    figure = go.Figure()
    names = [name for name in inflation.medians if name != ALL]
    size = 5 if len(inflation.pairs) > FEW_PAIRS else 8
    labels = []
    for row, name in enumerate(names):
        part = inflation.pairs[inflation.pairs.cloud_pair == name].sort_values(["region_a", "region_b"])
        median = inflation.medians[name]
        labels.append(f"{theme.cloud_name(name)}<br>n = {len(part):,}")
        figure.add_scatter(
            x=part.inflation,
            y=row + theme.spread(len(part)),
            mode="markers",
            marker={"color": theme.colour(name), "size": size, "opacity": 0.6},
            text=pair_labels(part),
            hovertemplate="%{text}<br>%{x:.2f} times light<extra></extra>",
            showlegend=False,
        )
        estimate_points(
            figure,
            [row],
            [median],
            marker={"symbol": "line-ns", "size": 24, "line": {"width": 3, "color": theme.TEXT}},
            bar={"color": theme.TEXT},
            text=[f"median {median.formatted} {median.formatted_interval}"],
            showlegend=False,
        )
    reference_line(figure, x=1)
    figure.update_yaxes(
        tickvals=list(range(len(names))), ticktext=labels, autorange="reversed", showgrid=False, zeroline=False
    )
    figure.update_xaxes(title="round-trip time over that of light in fibre (times)")
    overall = inflation.medians[ALL]
    without = [theme.cloud_name(name) for name in names if np.isnan(inflation.medians[name].low)]
    missing = f" Too few regions for an interval: {', '.join(without)}." if without else ""
    return theme.finish(
        figure,
        name="path-inflation",
        title="Path inflation by pair of clouds",
        subtitle=f"{POINTS}. Tick: median; bar: its {percent(overall.level)} interval by place. "
        "Dashed: light in fibre.",
        alt=f"Strips of path inflation per pair of clouds. {overall}",
        caption="How many times longer a round trip takes than light in fibre would along the great circle, "
        f"for {count(len(inflation.pairs), 'pair')}.{missing}",
        table=inflation.pairs,
        note=note,
    )
