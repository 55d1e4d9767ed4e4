"""RTT against distance with its lower envelope."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.formatting import percent
from wanbench.methods.distance.pair_points import (
    BAND_POINTS,
    DISTANCE_AXIS,
    POINTS,
    add_band,
    add_light,
    add_points,
    basis,
    distance_ends,
)

from .envelope import Envelope


def draw_envelope(envelope: Envelope, *, note: str = "") -> go.Figure:
    """RTT of every unordered pair, the line under which a share tau of them lies, its interval, and light in fibre."""
    frame, share = envelope.sample.frame, percent(envelope.tau)
    figure, ends = go.Figure(), distance_ends(frame)
    add_points(figure, frame, frame.distance_km, frame.value, "%{x:,.0f} km<br>%{y:.1f} ms")
    add_light(figure, ends)
    band = envelope.band(np.linspace(*ends, BAND_POINTS))
    add_band(figure, band, "rtt_ms", f"{share} envelope")
    figure.update_xaxes(title=DISTANCE_AXIS, range=ends, tickformat=",d")
    figure.update_yaxes(title="round-trip time (ms)", rangemode="tozero")
    level = percent(envelope.slope.level)
    shaded = f"; band: {level} of the envelopes of resampled regions" if band.low.notna().all() else ""
    return theme.finish(
        figure,
        name="rtt-lower-envelope",
        title="Lower envelope of round-trip time over distance",
        subtitle=f"{POINTS}. Line: {share} of the pairs lie under it{shaded}. Dashed: light in fibre.",
        alt=f"Scatter of round-trip time against distance for {basis(envelope.sample)} with its lower envelope. "
        f"{envelope.sentence}",
        caption=f"{envelope} The dashed line is the round trip of light in fibre along the great circle.",
        table=band,
        note=note,
    )
