"""RTT, throughput and path inflation against distance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ...figures import theme
from ...formatting import count, percent
from ...regions import LIGHT_RTT_MS_PER_KM
from ..regions.unordered_pairs import Sample
from .fits import RttFit, ThroughputFit
from .inflation import ALL, Inflation

BAND_POINTS = 60
FEW_PAIRS = 100
BAND_COLOUR = "rgba(31, 41, 51, 0.15)"
POINTS = "One point per pair of regions"


def rtt_against_distance(fit: RttFit, *, note: str = "") -> go.Figure:
    """
    RTT of every unordered pair against distance, by pair of clouds, with the fitted line and the interval of its
    height, over the floor that light in fibre sets.
    """
    sample, frame = fit.sample, fit.sample.frame
    figure = go.Figure()
    add_points(figure, frame, frame.distance_km, frame.value, "%{x:,.0f} km<br>%{y:.1f} ms")
    ends = np.array([0.0, frame.distance_km.max() * 1.02 if len(frame) else 1.0])
    floor = ends * LIGHT_RTT_MS_PER_KM
    line = {"color": theme.LIGHT, "width": 2, "dash": "dash"}
    figure.add_scatter(x=ends, y=floor, mode="lines", name="light in fibre", line=line, hoverinfo="skip")
    _line(figure, fit.band(np.linspace(*ends, BAND_POINTS)), "distance_km", "rtt_ms")
    figure.update_xaxes(title="great-circle distance (km)", range=ends, tickformat=",d")
    top = max(floor[-1], frame.value.max() if len(frame) else 0.0) * 1.05
    figure.update_yaxes(title="round-trip time (ms)", range=[0, top])
    return theme.finish(
        figure,
        name="rtt-against-distance",
        title="Round-trip time against distance",
        subtitle=f"{POINTS}, median of both directions. Dashed: light in fibre. Line: least squares; band: its "
        f"{percent(fit.slope.level)} interval by place.",
        alt=f"Scatter of round-trip time in ms against distance in km for {basis(sample)}. {fit.slope} {fit.pearson}",
        caption=f"Round-trip time of {basis(sample)} against the great-circle distance between the regions. "
        f"No point can lie under the dashed line, the round trip of light in fibre.{_left_out(sample)}",
        table=_behind(frame, "rtt_ms"),
        note=note,
    )


def throughput_against_distance(fit: ThroughputFit, *, note: str = "") -> go.Figure:
    """Throughput (log axis) of every unordered pair against distance, with the fitted line and its interval."""
    sample, frame = fit.sample, fit.sample.frame
    figure = go.Figure()
    add_points(figure, frame, frame.distance_km, frame.value, "%{x:,.0f} km<br>%{y:.3s}bit/s")
    ends = [0.0, frame.distance_km.max() * 1.02 if len(frame) else 1.0]
    _line(figure, fit.band(np.linspace(*ends, BAND_POINTS)), "distance_km", "throughput_bps")
    figure.update_xaxes(title="great-circle distance (km)", range=ends, tickformat=",d")
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
        table=_behind(frame, "throughput_bps"),
        note=note,
    )


def path_inflation(inflation: Inflation, *, note: str = "") -> go.Figure:
    """RTT over the round trip of light in fibre: every pair, per pair of clouds, with the median's interval."""
    figure = go.Figure()
    names = [name for name in inflation.medians if name != ALL]
    labels = []
    for row, name in enumerate(names):
        part = inflation.pairs[inflation.pairs.cloud_pair == name].sort_values(["region_a", "region_b"])
        median = inflation.medians[name]
        labels.append(f"{theme.cloud_name(name)}<br>n = {len(part):,}")
        marker = {
            "color": theme.colour(name),
            "size": 5 if len(inflation.pairs) > FEW_PAIRS else 8,
            "opacity": 0.6,
        }
        figure.add_scatter(
            x=part.inflation,
            y=row + theme.spread(len(part)),
            mode="markers",
            marker=marker,
            text=pair_labels(part),
            hovertemplate="%{text}<br>%{x:.2f} times light<extra></extra>",
            showlegend=False,
        )
        known = np.isfinite([median.low, median.high]).all()
        error = {"type": "data", "color": theme.TEXT, "thickness": 2, "width": 6, "symmetric": False}
        error |= {"array": [median.high - median.estimate], "arrayminus": [median.estimate - median.low]}
        figure.add_scatter(
            x=[median.estimate],
            y=[row],
            mode="markers",
            marker={"symbol": "line-ns", "size": 24, "line": {"width": 3, "color": theme.TEXT}},
            error_x=error if known else None,
            hovertemplate=f"median {median.written} {median.written_interval}<extra></extra>",
            showlegend=False,
        )
    figure.add_vline(x=1, line={"color": theme.LIGHT, "dash": "dash", "width": 2})
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=labels,
        autorange="reversed",
        showgrid=False,
        zeroline=False,
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


def add_points(figure: go.Figure, frame: pd.DataFrame, x: pd.Series, y: pd.Series, said: str) -> None:
    """One trace of points per pair of clouds, those within one cloud first."""
    names = sorted(frame.cloud_pair.unique(), key=lambda name: (len(set(name.split("-"))), name))
    many = len(frame) > FEW_PAIRS
    for name in names:
        part = frame.cloud_pair == name
        marker = {"color": theme.colour(name), "symbol": theme.SYMBOLS.get(name, "circle")}
        figure.add_scatter(
            x=x[part],
            y=y[part],
            mode="markers",
            name=theme.cloud_name(name),
            marker=marker | ({"size": 7, "opacity": 0.75} if many else {"size": 9, "opacity": 0.95}),
            text=pair_labels(frame[part]),
            hovertemplate=f"%{{text}}<br>{said}<extra></extra>",
        )


def _line(figure: go.Figure, band: pd.DataFrame, x: str, y: str) -> None:
    """The fitted line over its band; no band where there is no interval."""
    if band.low.notna().all():
        around = pd.concat([band[x], band[x][::-1]])
        edge = pd.concat([band.high, band.low[::-1]])
        figure.add_scatter(
            x=around,
            y=edge,
            fill="toself",
            mode="lines",
            line={"width": 0},
            fillcolor=BAND_COLOUR,
            hoverinfo="skip",
            showlegend=False,
        )
    line = {"color": theme.FIT, "width": 2.5}
    figure.add_scatter(x=band[x], y=band[y], mode="lines", name="least squares", line=line, hoverinfo="skip")


def pair_labels(frame: pd.DataFrame) -> list[str]:
    return [
        f"{theme.plain(a)} – {theme.plain(b)}" for a, b in zip(frame.region_a, frame.region_b, strict=True)
    ]


def _behind(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    kept = ["region_a", "region_b", "cloud_pair", "distance_km", "light_rtt_ms", "value", "n_directions"]
    return frame[[name for name in kept if name in frame]].rename(columns={"value": column})


def basis(sample: Sample) -> str:
    return f"{count(sample.n_pairs, 'pair')} of {count(sample.n_regions, 'region')}"


def _left_out(sample: Sample) -> str:
    said = sample.warnings()[: len(sample.left_out) > 0]
    return f" {said[0][0].upper()}{said[0][1:]}." if said else ""
