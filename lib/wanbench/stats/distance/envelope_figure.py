"""RTT against distance with its lower envelope."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from ...figures import theme
from ...formatting import count, percent
from .envelope import LIGHT_SLOPE, Envelope
from .fits_figure import BAND_COLOUR, BAND_POINTS, POINTS, add_points


def lower_envelope(found: Envelope, *, note: str = "") -> go.Figure:
    """RTT of every unordered pair, the line under which a share tau of them lies, its interval, and light in fibre."""
    frame = found.sample.frame
    figure = go.Figure()
    add_points(figure, frame, frame.distance_km, frame.value, "%{x:,.0f} km<br>%{y:.1f} ms")
    ends = np.array([0.0, frame.distance_km.max() * 1.02])
    light = {"color": theme.LIGHT, "width": 2, "dash": "dash"}
    figure.add_scatter(
        x=ends, y=LIGHT_SLOPE * ends / 1000, mode="lines", name="light in fibre", line=light, hoverinfo="skip"
    )
    band = found.band(np.linspace(*ends, BAND_POINTS))
    known = band.low.notna().all()
    if known:
        figure.add_scatter(
            x=np.concatenate([band.distance_km, band.distance_km[::-1]]),
            y=np.concatenate([band.low, band.high[::-1]]),
            fill="toself",
            mode="lines",
            line={"width": 0},
            fillcolor=BAND_COLOUR,
            hoverinfo="skip",
            showlegend=False,
        )
    line = {"color": theme.FIT, "width": 2.5}
    name = f"{percent(found.tau)} envelope"
    figure.add_scatter(
        x=band.distance_km, y=band.rtt_ms, mode="lines", name=name, line=line, hoverinfo="skip"
    )
    figure.update_xaxes(title="great-circle distance (km)", range=ends, tickformat=",d")
    figure.update_yaxes(title="round-trip time (ms)", rangemode="tozero")
    said = f"; band: {percent(found.slope.level)} of the envelopes of resampled regions" if known else ""
    basis = f"{count(found.sample.n_pairs, 'pair')} of {count(found.sample.n_regions, 'region')}"
    return theme.finish(
        figure,
        name="rtt-lower-envelope",
        title="Lower envelope of round-trip time over distance",
        subtitle=f"{POINTS}. Line: {percent(found.tau)} of the pairs lie under it{said}. Dashed: light in fibre.",
        alt=f"Scatter of round-trip time against distance for {basis} with its lower envelope. {found}",
        caption=f"{found} The dashed line is the round trip of light in fibre along the great circle.",
        table=band,
        note=note,
    )
