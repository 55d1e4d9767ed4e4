"""Per-second latency of one trial of each setting, with actions on brokers shaded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.errors import MissingDataError
from wanbench.figures import theme
from wanbench.formatting import count, quantity

from .trials import DisturbedTrial, DisturbedTrials, merged

LINES = {"p50_ms": (0.5, "median", "solid"), "p99_ms": (0.99, "p99", "solid"), "worst_ms": (1 - 1e-9, "slowest", "dot")}
PANEL_PX = 210
ABOVE_PX = 150


def timeline(result: DisturbedTrials, *, settings: Sequence[str], note: str = "") -> go.Figure:
    """One panel for the first counted trial of each setting; MissingDataError if there is none."""
    first = {name: [each for each in result.items if each.about.setting == name][:1] for name in settings}
    shown = [trial for found in first.values() for trial in found]
    if not shown:
        raise MissingDataError(f"no trial of {', '.join(settings)} counts." if settings else "none is planned.")
    titles = [theme.plain(each.about.setting) for each in shown]
    figure = make_subplots(len(shown), 1, vertical_spacing=0.3 / len(shown))
    tables = []
    for row, trial in enumerate(shown, start=1):
        seconds = by_second(trial)
        for (name, (_, title, dash)), colour in zip(LINES.items(), theme.SERIES_COLOURS, strict=False):
            line = {"color": colour, "dash": dash, "width": 2}
            figure.add_scatter(
                x=seconds.second + 0.5, y=seconds[name].where(np.isfinite(seconds[name])), mode="lines", name=title,
                line=line, legendgroup=title, showlegend=row == 1, row=row, col=1,
            )  # fmt: skip
        figure.add_hline(y=result.limit_ms, line={"color": theme.LIGHT, "dash": "dash", "width": 1}, row=row, col=1)
        tables += [seconds.assign(trial=trial.about.setting), _shade(figure, trial, row)]
        values = np.concatenate([seconds[name] for name in LINES])
        figure.update_yaxes(title=titles[row - 1], row=row, col=1, **theme.log_axis(values, "ms", 6))
    figure.update_xaxes(title="second of the schedule, after the warm-up", row=len(shown), col=1)
    figure.update_annotations(font_size=13)
    figure.update_layout(height=ABOVE_PX + PANEL_PX * len(shown), legend=theme.LEGEND_ON_TOP)
    lost = sum(merged(part for parts in each.seconds.values() for part in parts).n_lost for each in shown)
    caption = f"{count(len(shown), 'trial')}; {count(lost, 'record')} never received."
    return theme.finish(
        figure,
        name="latency-and-actions",
        title="Latency while brokers are disturbed",
        subtitle="Latency from due to received: median, p99 and slowest of the records due in each second. "
        "Shaded: from the beginning of each action until its end, lighter until no partition was under-replicated. "
        f"Dashed: {quantity(result.limit_ms, 'ms')}, the upper end of the earlier interval of p99.",
        alt=f"Latency over time of {', '.join(titles)}. {caption}",
        caption=caption,
        table=pd.concat(tables, ignore_index=True),
        note=note,
        headroom_px=theme.PANEL_TITLES_PX,
    )


def by_second(trial: DisturbedTrial) -> pd.DataFrame:
    """The columns of LINES per second since the warm-up; a quantile is infinite if lost records reach it."""
    rows = []
    for start_s, parts in trial.seconds.items():
        tail = merged(parts)
        if tail.n:
            rows.append(
                {"second": start_s - trial.start_s} | {name: tail.quantile(q) for name, (q, *_) in LINES.items()}
            )
    return pd.DataFrame(rows, columns=["second", *LINES])


def _shade(figure, trial: DisturbedTrial, row: int) -> pd.DataFrame:
    """Shade the actions of a trial; returns them as rows."""
    rows = []
    for action in trial.actions[trial.actions.began_at_s.notna()].itertuples():
        done_s, healthy_s = (
            trial.end_s if pd.isna(each) else float(each) for each in (action.done_at_s, action.healthy_at_s)
        )
        begin, done, healthy = (each - trial.start_s for each in (float(action.began_at_s), done_s, healthy_s))
        whom = "" if pd.isna(action.node_id) else f" {int(action.node_id)}"
        style = {"fillcolor": theme.OUTSIDE, "line_width": 0, "row": row, "col": 1}
        if action.kind != "restore":
            text = {"text": f"{action.kind}{whom}", "font": {"size": 11}, "yanchor": "bottom"}
            figure.add_vrect(x0=begin, x1=done, opacity=0.18, annotation=text, annotation_position="top left", **style)
            figure.add_vrect(x0=done, x1=max(done, healthy), opacity=0.07, **style)
        rows.append({"trial": trial.about.setting, "action": f"{action.kind}{whom}", "second": begin, "done_s": done})
    return pd.DataFrame(rows)
