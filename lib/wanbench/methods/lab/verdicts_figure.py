"""Requested against delivered: the error of each link."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.errors import ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import percent

from .verdicts import OUTSIDE, UNKNOWN, WITHIN, Verdicts

PANELS = {
    # quantity: (panel title, what the x axis is, factor of the error, factor of the request, relative error?)
    "rtt": ("RTT: error (ms)", "requested (ms)", 1.0, 1.0, False),
    "rate": ("Rate: error (%)", "requested (Mbit/s)", 100.0, 1e-6, True),
    "loss": ("Loss: error (points)", "requested (%)", 100.0, 100.0, False),
    "jitter": ("Jitter: error (ms)", "requested (ms)", 1.0, 1.0, False),
    "cut": ("Cut: last packet after (ms)", "cut number", 1.0, 1.0, False),
}
PANEL_COLUMNS = 3
PANEL_TICKS = 6
"""More labels of a log axis overlap in a third of the page."""
MARKS = {WITHIN: (theme.WITHIN, "circle"), OUTSIDE: (theme.OUTSIDE, "x"), UNKNOWN: (theme.UNKNOWN, "circle-open")}


def requested_against_delivered(verdicts: Verdicts, *, note: str = "") -> go.Figure:
    """Error of each link against its request, a panel per quantity, with intervals and the allowed band."""
    rows = verdicts.rows
    names = [name for name in PANELS if (rows.quantity == name).any()]
    if not names:
        raise ParameterError(f"the verdicts have none of the quantities {', '.join(PANELS)}")
    columns = min(PANEL_COLUMNS, len(names))
    n_rows = -(-len(names) // columns)
    titles = [PANELS[name][0] for name in names]
    figure = make_subplots(n_rows, columns, subplot_titles=titles, vertical_spacing=0.26, horizontal_spacing=0.08)
    shown = set()
    for place, name in enumerate(names):
        at = {"row": place // columns + 1, "col": place % columns + 1}
        _panel(figure, rows[rows.quantity == name], name, at, shown)
    figure.update_annotations(font_size=13)
    figure.update_layout(legend=theme.LEGEND_ON_TOP)
    counts = "; ".join(
        f"{row.quantity} {row.n_within:,} of {row.n_links - row.n_unknown:,} within"
        for row in verdicts.summary().itertuples(index=False)
    )
    level = rows.level[rows.level.notna()]
    bars = f" Bars: {percent(level.iloc[0])} intervals." if len(level) else ""
    limits = {name: "; ".join(rows.limit[rows.quantity == name].unique()) for name in names}
    limits = ", ".join(f"{PANELS[name][0].partition(':')[0]} {limits[name]}" for name in names if name != "loss")
    return theme.finish(
        figure,
        name="requested-against-delivered",
        title="Requested against delivered",
        subtitle=f"One point per link: delivered less requested. Shaded: the allowed error ({limits}).{bars}",
        alt=f"Errors of emulated links against what was requested: {counts}.",
        caption=f"What the links delivered, less what was requested of them ({counts}). "
        "Loss has no band: its verdict is whether the interval holds an error of zero.",
        table=rows,
        note=note,
        headroom_px=theme.PANEL_TITLES_PX,
    )


def _panel(figure: go.Figure, part: pd.DataFrame, name: str, at: dict, shown: set) -> None:
    _, x_title, factor, request_factor, relative = PANELS[name]
    part = part[part.delivered.notna()].sort_values(["requested", "from_region", "to_region"])
    divisor = part.requested if relative else 1.0
    x = part.requested * request_factor
    if name == "cut":
        x = pd.Series(np.arange(1, len(part) + 1), index=part.index)
    error, allowed = part.error / divisor * factor, part.allowed / divisor * factor
    low, high = ((part[end] - part.requested) / divisor * factor for end in ("low", "high"))
    if allowed.notna().any():
        _band(figure, x, allowed, at, one_sided=name == "cut")
    for verdict, (colour, symbol) in MARKS.items():
        chosen = part.verdict == verdict
        if not chosen.any():
            continue
        ends = part[chosen]
        primitives.interval_points(
            figure,
            x[chosen],
            error[chosen],
            low[chosen],
            high[chosen],
            marker={"color": colour, "symbol": symbol, "size": 7},
            bar={"thickness": 1, "width": 0},
            vertical=True,
            name=verdict,
            legendgroup=verdict,
            showlegend=verdict not in shown,
            text=[theme.plain(f"{row.from_region} to {row.to_region}") for row in ends.itertuples()],
            hovertemplate="%{text}<br>requested %{x:.4g}<br>error %{y:.3g}<extra></extra>",
            **at,
        )
        shown.add(verdict)
    wide = name != "cut" and len(x) and x.min() > 0 and x.max() / x.min() > 20
    figure.update_xaxes(title=x_title.replace(")", ", log axis)") if wide else x_title, **at)
    if wide:
        settings = theme.log_axis(x, "", PANEL_TICKS)
        figure.update_xaxes(**settings, **at)
    figure.update_yaxes(zeroline=True, zerolinecolor=theme.MUTED, **at)
    if name == "cut":
        figure.update_xaxes(dtick=max(1, len(part) // 8), **at)


def _band(figure: go.Figure, x: pd.Series, allowed: pd.Series, at: dict, *, one_sided: bool) -> None:
    """The allowed error over the requests, as a shaded area."""
    edges = pd.DataFrame({"x": x, "allowed": allowed}).dropna().drop_duplicates("x").sort_values("x")
    left, right = edges.x.iloc[0], edges.x.iloc[-1]
    if left == right or one_sided:
        pad = 0.5 if one_sided else 0.05 * max(abs(left), 1.0)
        edges = pd.DataFrame({"x": [left - pad, right + pad], "allowed": edges.allowed.iloc[0]})
    lower = edges.allowed * (0.0 if one_sided else -1.0)
    primitives.band(figure, edges.x, lower, edges.allowed, **at)
