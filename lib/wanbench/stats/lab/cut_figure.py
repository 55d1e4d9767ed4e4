"""What a cut does to the echoes that cross the link."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...errors import ParameterError
from ...figures import theme
from ...formatting import count
from .verdicts_figure import LEGEND_ON_TOP, PANEL_TITLE_PX

MAX_TIMELINES = 3
"""More timelines below each other do not fit on a screen."""


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
    n_all, cuts = len(cuts), cuts.head(MAX_TIMELINES)
    if cuts.empty:
        raise ParameterError("there is no cut to draw")
    titles = [f"{theme.plain(cut.from_region)} to {theme.plain(cut.to_region)}" for cut in cuts.itertuples()]
    shared = {"shared_xaxes": True, "vertical_spacing": 0.3 / max(2, len(cuts) + 1)}
    figure = make_subplots(len(cuts), 1, subplot_titles=titles, **shared)
    timelines, last_ms = [], []
    for row, event in enumerate(cuts.itertuples(index=False), start=1):
        timeline = _timeline(echoes, event, around_s)
        timelines.append(timeline)
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
        table=pd.concat(timelines, ignore_index=True),
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
