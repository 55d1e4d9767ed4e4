"""The lab's calibration: requested against delivered, and what a cut does to the echoes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...errors import ParameterError
from ...figures import theme
from ...formatting import count, percent
from .calibration import OUTSIDE, UNKNOWN, WITHIN, summary

PANELS = {
    # quantity: (panel title, what the x axis is, factor of the error, factor of the request, relative error?)
    "rtt": ("RTT: error (ms)", "requested (ms)", 1.0, 1.0, False),
    "rate": ("Rate: error (%)", "requested (Mbit/s)", 100.0, 1e-6, True),
    "loss": ("Loss: error (points)", "requested (%)", 100.0, 100.0, False),
    "jitter": ("Jitter: error (ms)", "requested (ms)", 1.0, 1.0, False),
    "cut": ("Cut: last packet after (ms)", "cut number", 1.0, 1.0, False),
}
SHORT = {"rtt": "RTT", "rate": "rate", "loss": "loss", "jitter": "jitter", "cut": "cut"}
COLUMNS = 3
PANEL_TICKS, PANEL_TITLE_PX = 6, 18
LEGEND_ON_TOP = {
    "orientation": "h",
    "x": 1,
    "xanchor": "right",
    "y": 1,
    "yref": "container",
    "yanchor": "top",
}
VERDICTS = {
    WITHIN: (theme.WITHIN, "circle"),
    OUTSIDE: (theme.OUTSIDE, "x"),
    UNKNOWN: (theme.UNKNOWN, "circle-open"),
}
LIMIT_COLOUR = "rgba(0, 114, 178, 0.12)"
MOST_TIMELINES = 3


def requested_against_delivered(calibration: pd.DataFrame, *, note: str = "") -> go.Figure:
    """
    Error of each link against its request, a panel per quantity, with intervals and the allowed band.

    `calibration` has the rows of `stats.link` functions, put together.
    """
    names = [name for name in PANELS if (calibration.quantity == name).any()]
    if not names:
        raise ParameterError(f"the calibration has none of the quantities {', '.join(PANELS)}")
    columns = min(COLUMNS, len(names))
    n_rows = -(-len(names) // columns)
    titles = [PANELS[name][0] for name in names]
    figure = make_subplots(
        n_rows, columns, subplot_titles=titles, vertical_spacing=0.26, horizontal_spacing=0.08
    )
    shown = set()
    for place, name in enumerate(names):
        at = {"row": place // columns + 1, "col": place % columns + 1}
        _panel(figure, calibration[calibration.quantity == name], name, at, shown)
    figure.update_annotations(font_size=13)
    figure.update_layout(legend=LEGEND_ON_TOP)
    counted = summary(calibration)
    said = "; ".join(
        f"{row.quantity} {row.n_within:,} of {row.n_links - row.n_unknown:,} within"
        for row in counted.itertuples(index=False)
    )
    level = calibration.level[calibration.level.notna()]
    bars = f" Bars: {percent(level.iloc[0])} intervals." if len(level) else ""
    limits = ", ".join(f"{SHORT[name]} {_limit(calibration, name)}" for name in names if name != "loss")
    return theme.finish(
        figure,
        name="requested-against-delivered",
        title="Requested against delivered",
        subtitle=f"One point per link: delivered less requested. Shaded: the allowed error ({limits}).{bars}",
        alt=f"Errors of emulated links against what was requested: {said}.",
        caption=f"What the links delivered, less what was requested of them ({said}). "
        "Loss has no band: its verdict is whether the interval holds an error of zero.",
        table=calibration,
        note=note,
        headroom_px=PANEL_TITLE_PX,
    )


def _limit(calibration: pd.DataFrame, name: str) -> str:
    return "; ".join(calibration.limit[calibration.quantity == name].unique())


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
    for verdict, (colour, symbol) in VERDICTS.items():
        chosen = part.verdict == verdict
        if not chosen.any():
            continue
        bars = {"type": "data", "symmetric": False, "thickness": 1, "width": 0, "color": colour}
        bars |= {"array": (high - error)[chosen], "arrayminus": (error - low)[chosen]}
        figure.add_scatter(
            x=x[chosen],
            y=error[chosen],
            mode="markers",
            name=verdict,
            legendgroup=verdict,
            showlegend=verdict not in shown,
            marker={"color": colour, "symbol": symbol, "size": 7},
            error_y=bars if high.notna().any() else None,
            text=[
                f"{theme.plain(row.from_region)} to {theme.plain(row.to_region)}"
                for row in part[chosen].itertuples()
            ],
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
    figure.add_scatter(
        x=pd.concat([edges.x, edges.x[::-1]]),
        y=pd.concat([edges.allowed, lower[::-1]]),
        fill="toself",
        mode="lines",
        line={"width": 0},
        fillcolor=LIMIT_COLOUR,
        hoverinfo="skip",
        showlegend=False,
        **at,
    )


def cut_timeline(
    echoes: pd.DataFrame, cuts: pd.DataFrame, *, around_s: float = 2.0, note: str = ""
) -> go.Figure:
    """
    The echoes around each cut: replies at their RTT, lost echoes below, against time since the command.

    Parameters
    ----------
    echoes : DataFrame
        Table of this name, with `received_at_s`. A lost echo is placed by its sequence number between the
        replies before and after it.
    cuts : DataFrame
        from_region, to_region, cut_at_s, healed_at_s (null: never), and run_id if the echoes have it. At most
        the first three are drawn.
    around_s : float
        How long before the cut, and after healing, is shown.
    """
    n_all, cuts = len(cuts), cuts.head(MOST_TIMELINES)
    if cuts.empty:
        raise ParameterError("there is no cut to draw")
    titles = [f"{theme.plain(cut.from_region)} to {theme.plain(cut.to_region)}" for cut in cuts.itertuples()]
    shared = {"shared_xaxes": True, "vertical_spacing": 0.3 / max(2, len(cuts) + 1)}
    figure = make_subplots(len(cuts), 1, subplot_titles=titles, **shared)
    behind, last_ms = [], []
    for row, event in enumerate(cuts.itertuples(index=False), start=1):
        timeline = _timeline(echoes, event, around_s)
        behind.append(timeline)
        length_s = event.healed_at_s - event.cut_at_s
        during = timeline[(timeline.since_cut_s > 0) & ~timeline.lost]
        during = during[during.since_cut_s < (length_s if np.isfinite(length_s) else np.inf)]
        last_ms.append(1000 * during.since_cut_s.max() if len(during) else 0.0)
        _draw_timeline(figure, timeline, length_s, row)
    figure.update_xaxes(title="time since the command to cut (s)", row=len(cuts), col=1)
    figure.update_annotations(font_size=13)
    figure.update_layout(height=max(theme.HEIGHT_PX, 150 + 150 * len(cuts)), legend=LEGEND_ON_TOP)
    worst = max(last_ms)
    of_all = f" (the first of {n_all})" if n_all > len(cuts) else ""
    return theme.finish(
        figure,
        name="cut-timeline",
        title="Echoes around a cut",
        subtitle="Points: replies, at their round-trip time in ms. Ticks at the bottom: lost echoes. "
        "Shaded: from the command to cut to the command to heal.",
        alt=f"Timelines of echoes around {count(len(cuts), 'cut')}; the last reply after the command to cut came "
        f"{worst:.0f} ms after it at the latest.",
        caption=f"What {count(len(cuts), 'cut')}{of_all} did to echoes: the last reply came {worst:.0f} ms after the "
        "command at the latest.",
        table=pd.concat(behind, ignore_index=True),
        note=note,
        headroom_px=PANEL_TITLE_PX,
    )


def _timeline(echoes: pd.DataFrame, event, around_s: float) -> pd.DataFrame:
    chosen = (echoes.from_region == event.from_region) & (echoes.to_region == event.to_region)
    if "run_id" in echoes.columns and hasattr(event, "run_id"):
        chosen &= echoes.run_id == event.run_id
    part = echoes[chosen & ~echoes.duplicate.astype(bool)].sort_values("sequence")
    at = part.received_at_s.to_numpy(dtype=float)
    known = np.isfinite(at)
    if known.sum() >= 2:
        at = np.where(known, at, np.interp(part.sequence, part.sequence[known], at[known]))
    since = at - event.cut_at_s
    end = (
        event.healed_at_s - event.cut_at_s if np.isfinite(event.healed_at_s) else np.nanmax(since, initial=0)
    )
    timeline = pd.DataFrame(
        {
            "from_region": event.from_region,
            "to_region": event.to_region,
            "sequence": part.sequence.to_numpy(),
            "since_cut_s": since,
            "rtt_ms": part.rtt_ms.to_numpy(dtype=float),
            "lost": part.lost.to_numpy(dtype=bool),
        }
    )
    return timeline[timeline.since_cut_s.between(-around_s, end + around_s)].reset_index(drop=True)


def _draw_timeline(figure: go.Figure, timeline: pd.DataFrame, length_s: float, row: int) -> None:
    lost = timeline[timeline.lost]
    replies = timeline[~timeline.lost & timeline.rtt_ms.notna()]
    end = length_s if np.isfinite(length_s) else timeline.since_cut_s.max()
    first = row == 1
    figure.add_scatter(
        x=replies.since_cut_s,
        y=replies.rtt_ms,
        mode="markers",
        name="reply",
        legendgroup="reply",
        showlegend=first,
        marker={"color": theme.WITHIN, "size": 5},
        hovertemplate="%{x:.3f} s<br>%{y:.2f} ms<extra></extra>",
        row=row,
        col=1,
    )
    figure.add_scatter(
        x=lost.since_cut_s,
        y=np.zeros(len(lost)),
        mode="markers",
        name="lost",
        legendgroup="lost",
        showlegend=first,
        marker={
            "color": theme.OUTSIDE,
            "symbol": "line-ns",
            "size": 9,
            "line": {"width": 1.5, "color": theme.OUTSIDE},
        },
        hovertemplate="%{x:.3f} s<br>lost<extra></extra>",
        row=row,
        col=1,
    )
    figure.add_vrect(x0=0, x1=end, fillcolor=theme.OUTSIDE, opacity=0.1, line_width=0, row=row, col=1)
    figure.update_yaxes(title="RTT (ms)", rangemode="tozero", row=row, col=1)
