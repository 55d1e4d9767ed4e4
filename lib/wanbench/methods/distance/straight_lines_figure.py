"""RTT and throughput against distance, with the fitted lines."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.figures import theme
from wanbench.formatting import count, percent
from wanbench.methods.regions.unordered_pairs import Sample
from wanbench.regions import light_rtt_ms

from .pair_points import BAND_POINTS, DISTANCE_AXIS, POINTS, add_band, add_light, add_points, basis, distance_ends
from .straight_lines import RttFit, ThroughputFit


def rtt_against_distance(fit: RttFit, *, note: str = "") -> go.Figure:
    """
    RTT of every unordered pair against distance, by pair of clouds, with the fitted line and the interval of its
    height, over the floor that light in fibre sets.
    """
    sample, frame = fit.sample, fit.sample.frame
    figure, ends = go.Figure(), distance_ends(frame)
    add_points(figure, frame, frame.distance_km, frame.value, "%{x:,.0f} km<br>%{y:.1f} ms")
    add_light(figure, ends)
    add_band(figure, fit.band(np.linspace(*ends, BAND_POINTS)), "rtt_ms", "least squares")
    figure.update_xaxes(title=DISTANCE_AXIS, range=ends, tickformat=",d")
    top = max(light_rtt_ms(ends[1]), frame.value.max()) * 1.05
    below = int((frame.value < light_rtt_ms(frame.distance_km)).sum())
    figure.update_yaxes(title="round-trip time (ms)", range=[0, top])
    return theme.finish(
        figure,
        name="rtt-against-distance",
        title="Round-trip time against distance",
        subtitle=f"{POINTS}, median of both directions. Dashed: light in fibre. Line: least squares; band: its "
        f"{percent(fit.slope.level)} interval by place.",
        alt=f"Scatter of round-trip time in ms against distance in km for {basis(sample)}. {fit.slope} {fit.pearson}",
        caption=f"Round-trip time of {basis(sample)} against the great-circle distance between the regions. "
        f"{below:,} of {count(len(frame), 'point')} lie under the dashed line, the round trip of light in fibre."
        f"{_left_out(sample)}",
        table=_numbers(frame, "rtt_ms"),
        note=note,
    )


def throughput_against_distance(fit: ThroughputFit, *, note: str = "") -> go.Figure:
    """Throughput (log axis) of every unordered pair against distance, with the fitted line and its interval."""
    sample, frame = fit.sample, fit.sample.frame
    figure, ends = go.Figure(), distance_ends(frame)
    add_points(figure, frame, frame.distance_km, frame.value, "%{x:,.0f} km<br>%{y:.3s}bit/s")
    add_band(figure, fit.band(np.linspace(*ends, BAND_POINTS)), "throughput_bps", "least squares")
    figure.update_xaxes(title=DISTANCE_AXIS, range=ends, tickformat=",d")
    figure.update_yaxes(title="throughput (bit/s, log axis)", **theme.log_axis(frame.value, "bit/s"))
    return theme.finish(
        figure,
        name="throughput-against-distance",
        title="Throughput against distance",
        subtitle=f"{POINTS}, geometric mean of both directions. Vertical axis: logarithmic. Line: least squares; "
        f"band: its {percent(fit.slope.level)} interval by place.",
        alt=f"Scatter of throughput on a log axis against distance in km for {basis(sample)}. {fit.half_distance} "
        f"{fit.pearson}",
        caption=f"TCP throughput of {basis(sample)} against the great-circle distance between the regions."
        f"{_left_out(sample)}",
        table=_numbers(frame, "throughput_bps"),
        note=note,
    )


def _numbers(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    kept = ["region_a", "region_b", "cloud_pair", "distance_km", "light_rtt_ms", "value", "n_directions"]
    return frame[[name for name in kept if name in frame]].rename(columns={"value": column})


def _left_out(sample: Sample) -> str:
    if not len(sample.left_out):
        return ""
    first = sample.warnings()[0]
    return f" {first[0].upper()}{first[1:]}."
