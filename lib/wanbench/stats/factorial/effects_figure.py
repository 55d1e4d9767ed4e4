"""What each factor does to throughput, and where latency matters more than bandwidth."""

from __future__ import annotations

from math import log2

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...figures import theme
from ...formatting import count, percent
from .fit import Factorial

VERDICTS = {"holds": theme.WITHIN, "undecided": theme.UNKNOWN, "fails": theme.OUTSIDE}
SYMBOLS = {"holds": "circle", "undecided": "diamond", "fails": "square"}
HEADROOM_PX = 24


def elasticities(found: Factorial, *, note: str = "") -> go.Figure:
    """What doubling each factor multiplies throughput by; beside it the thesis at each combination of levels."""
    places = found.places.sort_values("gain", ignore_index=True)
    panels = 2 if len(places) else 1
    titles = [
        "doubling a factor, or its high level over its low one",
        "halved delay over doubled rate, by combination",
    ][:panels]
    figure = make_subplots(rows=1, cols=panels, horizontal_spacing=0.12, subplot_titles=titles)
    factors, values = found.factors, [*found.doublings.values(), *found.effects.values()]
    names = [
        *(f"2 × {name}" for name in found.doublings),
        *(each.quantity for each in found.effects.values()),
    ]
    estimates = np.array([each.estimate for each in values])
    figure.add_scatter(
        x=estimates,
        y=list(range(len(names))),
        mode="markers",
        marker={"size": 11, "color": theme.FIT},
        error_x=_bar(estimates, [each.low for each in values], [each.high for each in values]),
        text=[f"{each.written} ({each.written_interval})" for each in values],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
        row=1,
        col=1,
    )
    labels = [theme.plain(name) for name in names]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=labels, autorange="reversed", row=1, col=1)
    ends = [value for each in values for value in (each.low, each.high, 1.0)]
    figure.update_xaxes(
        title=f"multiplies {theme.plain(found.response)} by (log axis)", **_times(ends), row=1, col=1
    )
    figure.add_vline(x=1, line={"color": theme.LIGHT, "dash": "dash", "width": 2}, row=1, col=1)
    if panels == 2:
        _thesis(figure, places, factors)
    level = percent(values[0].level)
    together = (
        f" Right: one point per combination of levels; bars: {level} for all together." if panels == 2 else ""
    )
    return theme.finish(
        figure,
        name="factorial-elasticities",
        title=f"What moves {found.response}",
        subtitle=f"Left: on average between the levels; bars: {level} intervals over runs.{together} "
        "Dashed: no difference.",
        alt=f"Factors of a fitted factorial experiment. {found}",
        caption=f"Factorial experiment of {values[0].basis}. {found.verdict()}".strip(),
        table=places if panels == 2 else found.table(),
        note=note,
        headroom_px=HEADROOM_PX,
    )


def _thesis(figure: go.Figure, places, names) -> None:
    for verdict, shade in VERDICTS.items():
        part = places[places.verdict == verdict]
        if part.empty:
            continue
        text = [
            "<br>".join(f"{theme.plain(n)} {theme.plain(row[n])}" for n in names)
            for _, row in part.iterrows()
        ]
        figure.add_scatter(
            x=part.gain,
            y=part.index,
            mode="markers",
            name=f"{verdict} ({count(len(part), 'combination')})",
            marker={"size": 8, "color": shade, "symbol": SYMBOLS[verdict]},
            error_x=_bar(part.gain, part.low, part.high) | {"color": shade},
            text=text,
            hovertemplate="%{text}<br>%{x:.3g} times<extra></extra>",
            row=1,
            col=2,
        )
    figure.update_yaxes(
        showticklabels=False, title="combinations of levels, sorted", zeroline=False, row=1, col=2
    )
    shown = [*places.low, *places.high, 1.0]
    figure.update_xaxes(title="times (log axis); above 1 latency matters more", **_times(shown), row=1, col=2)
    figure.add_vline(x=1, line={"color": theme.LIGHT, "dash": "dash", "width": 2}, row=1, col=2)


def _bar(values, low, high) -> dict:
    values, low, high = (np.asarray(each, dtype=float) for each in (values, low, high))
    return {
        "type": "data",
        "symmetric": False,
        "array": high - values,
        "arrayminus": values - low,
        "thickness": 2,
        "width": 5,
    }


def _times(values) -> dict:
    """A logarithmic axis of ratios, with ticks at halves and doubles."""
    known = [log2(value) for value in values if np.isfinite(value) and value > 0]
    low, high = int(np.floor(min(known))), int(np.ceil(max(known)))
    step = max(1, (high - low) // 8)
    ticks = [2.0**power for power in range(low, high + 1, step)]
    ends = np.log10([min(2.0 ** min(known), 0.9) / 1.05, max(2.0 ** max(known), 1.1) * 1.05]).tolist()
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:.3g}" for tick in ticks], "range": ends}
