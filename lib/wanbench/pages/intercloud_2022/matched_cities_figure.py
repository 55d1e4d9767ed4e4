"""Matched cities: pairs between clouds against pairs within them."""

from __future__ import annotations

import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.figures.primitives import REFERENCE

from .dots import DOT
from .matched_cities import MatchedCities


def between_against_within(result: MatchedCities, *, note: str = "") -> go.Figure:
    """Per pair of cities: the mean of the two pairs between clouds against the mean of the two within."""
    throughput = result.column == "throughput_bps"
    name, unit = ("throughput", "bit/s") if throughput else ("round-trip time", "ms")
    pairs = result.pairs
    figure = go.Figure()
    figure.add_scatter(
        x=pairs.within,
        y=pairs.between,
        mode="markers",
        marker=DOT,
        text=[f"{theme.plain(row.city_a)} – {theme.plain(row.city_b)}" for row in pairs.itertuples()],
        hovertemplate="%{text}<extra></extra>",
        name="pair of cities",
    )
    both = pairs[["within", "between"]].to_numpy()
    ends = [float(both.min()), float(both.max())]
    figure.add_scatter(x=ends, y=ends, mode="lines", line=REFERENCE, name="no difference", hoverinfo="skip")
    axis = theme.log_axis(ends, unit) if throughput else {}
    figure.update_xaxes(title=f"{name} within the clouds ({unit})", **axis)
    figure.update_yaxes(title=f"{name} between the clouds ({unit})", **axis)
    return theme.finish(
        figure,
        name=f"matched-cities-{name.replace(' ', '-')}",
        title=f"The same cities, within and between clouds: {name}",
        subtitle="One point per pair of cities with both clouds. Dashed: no difference.",
        alt=f"Scatter of {name} between clouds against within one over the same pairs of cities. {result}",
        caption=result.difference.sentence,
        table=pairs,
        note=note,
    )
