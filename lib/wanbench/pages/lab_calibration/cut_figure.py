"""Draw the echoes that cross a link before, during and after a cut."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_columns
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.formatting import count
from wanbench.methods.lab.verdicts import matching

AROUND_S = 2.0  # Time shown before the cut and after healing
MAX_TIMELINES = 3  # More timelines below each other do not fit on a screen


@theme.styled
def cut_timeline(echoes: pd.DataFrame, cuts: pd.DataFrame) -> go.Figure:
    """
    Draw the echoes around each of the first three cuts: RTT against the time since the command to cut.

    Lost echoes are drawn at an RTT of 0, at a time interpolated by sequence number between the replies around them.
    """
    check_columns("cuts", cuts, ["run_id", "from_region", "to_region", "cut_at_s", "healed_at_s"])
    n_all, cuts = len(cuts), cuts.head(MAX_TIMELINES)
    if cuts.empty:
        raise ParameterError("there is no cut to draw")
    titles = [f"{theme.plain(cut.from_region)} to {theme.plain(cut.to_region)}" for cut in cuts.itertuples()]
    shared = {"shared_xaxes": True, "vertical_spacing": 0.3 / max(2, len(cuts) + 1)}
    figure = make_subplots(len(cuts), 1, subplot_titles=titles, **shared)
    timelines, last_ms = [], []
    for row, (_, event) in enumerate(cuts.iterrows(), start=1):
        timeline = _timeline(echoes, event)
        timelines.append(timeline)
        length_s = event.healed_at_s - event.cut_at_s
        during = timeline[(timeline.since_cut_s > 0) & ~timeline.lost]
        during = during[during.since_cut_s < (length_s if np.isfinite(length_s) else np.inf)]
        last_ms.append(1000 * during.since_cut_s.max() if len(during) else 0.0)
        _draw_timeline(figure, timeline, length_s, row)
    figure.update_xaxes(title="time since the command to cut (s)", row=len(cuts), col=1)
    figure.update_annotations(font_size=13)
    figure.update_layout(height=max(theme.HEIGHT_PX, 150 + 150 * len(cuts)), legend=theme.LEGEND_ON_TOP)
    worst = max(last_ms)
    last = (
        f"the last reply came {worst:.0f} ms or less after the command"
        if round(worst) > 0
        else "no reply came after the command to cut"
    )
    of_all = f" (the first of {n_all})" if n_all > len(cuts) else ""
    return theme.finish(
        figure,
        name="cut-timeline",
        title=theme.headline(last, "Echoes around a cut"),
        subtitle="Points: replies, at their round-trip time in ms. Ticks at the bottom: lost echoes. "
        "Shaded: from the command to cut to the command to heal.",
        alt=f"Timelines of echoes around {count(len(cuts), 'cut')}; {last}.",
        caption=f"Echoes around {count(len(cuts), 'cut')}{of_all}: {last}.",
        table=pd.concat(timelines, ignore_index=True),
        headroom_px=theme.PANEL_TITLES_PX,
    )


def _timeline(echoes: pd.DataFrame, event: pd.Series) -> pd.DataFrame:
    part = matching(echoes, (event.run_id, event.from_region, event.to_region))
    part = part[~part.duplicate.astype(bool)].sort_values("sequence")
    at = part.received_at_s.to_numpy(dtype=float)
    arrived = np.isfinite(at)
    if arrived.sum() >= 2:
        at = np.where(arrived, at, np.interp(part.sequence, part.sequence[arrived], at[arrived]))
    since = at - event.cut_at_s
    end = event.healed_at_s - event.cut_at_s if np.isfinite(event.healed_at_s) else np.nanmax(since, initial=0)
    columns = {"from_region": event.from_region, "to_region": event.to_region, "sequence": part.sequence.to_numpy()}
    columns |= {
        "since_cut_s": since,
        "rtt_ms": part.rtt_ms.to_numpy(dtype=float),
        "lost": part.lost.to_numpy(dtype=bool),
    }
    timeline = pd.DataFrame(columns)
    return timeline[timeline.since_cut_s.between(-AROUND_S, end + AROUND_S)].reset_index(drop=True)


def _draw_timeline(figure: go.Figure, timeline: pd.DataFrame, length_s: float, row: int) -> None:
    lost = timeline[timeline.lost]
    replies = timeline[~timeline.lost & timeline.rtt_ms.notna()]
    end = length_s if np.isfinite(length_s) else timeline.since_cut_s.max()
    where, first = {"row": row, "col": 1}, row == 1
    ticks = {"symbol": "line-ns", "size": 9, "line": {"width": 1.5, "color": theme.OUTSIDE}}
    for name, part, rtts, marker, unit in (
        ("reply", replies, replies.rtt_ms, {"color": theme.WITHIN, "size": 5}, "%{y:.2f} ms"),
        ("lost", lost, np.zeros(len(lost)), {"color": theme.OUTSIDE} | ticks, "lost"),
    ):
        figure.add_scatter(
            x=part.since_cut_s,
            y=rtts,
            mode="markers",
            name=name,
            legendgroup=name,
            showlegend=first,
            marker=marker,
            hovertemplate=f"%{{x:.3f}} s<br>{unit}<extra></extra>",
            **where,
        )
    figure.add_vrect(x0=0, x1=end, fillcolor=theme.OUTSIDE, opacity=0.1, line_width=0, **where)
    figure.update_yaxes(title="RTT (ms)", rangemode="tozero", **where)
