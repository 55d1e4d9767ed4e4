"""p99 of every episode of slowness, phase by phase, with and without demotion."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wanbench.figures import primitives, theme

from .degraded import PHASES, Degraded, label

STEPS = {"before_ms": "undisturbed"} | {f"{name}_ms": title for name, title in PHASES.items()}


def degraded(result: Degraded, *, note: str = "") -> go.Figure:
    """A thin line per episode and a thick one for the median of each arm, on a logarithmic axis."""
    figure, places = go.Figure(), np.arange(len(STEPS))
    for k, (system, demotes) in enumerate(result.arms):
        own, name = result.arm(system, demotes), theme.plain(label(system, demotes))
        colour, at = (
            theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)],
            places + 0.06 * (k - (len(result.arms) - 1) / 2),
        )
        for values in own[list(STEPS)].to_numpy(dtype=float):
            shown = np.where(np.isfinite(values), values, np.nan)
            line = {"color": colour, "width": 1}
            figure.add_scatter(
                x=at, y=shown, mode="lines+markers", line=line, opacity=0.45, marker={"size": 5}, legendgroup=name,
                showlegend=False, hovertemplate="%{y:.4g} ms<extra>" + name + "</extra>",
            )  # fmt: skip
        middle = own[list(STEPS)].median().to_numpy(dtype=float)
        figure.add_scatter(
            x=at, y=middle, mode="lines+markers", name=name, legendgroup=name, line={"color": colour, "width": 4},
            marker={"size": 10}, hovertemplate="median %{y:.4g} ms<extra>" + name + "</extra>",
        )  # fmt: skip
    primitives.reference_line(figure, y=result.limit_ms)
    values = np.append(result.rows[list(STEPS)].to_numpy(dtype=float).ravel(), result.limit_ms)
    figure.update_yaxes(title="p99, due to received", **theme.log_axis(values, "ms"))
    figure.update_xaxes(tickvals=list(places), ticktext=list(STEPS.values()))
    figure.update_layout(legend=theme.LEGEND_ON_TOP)
    return theme.finish(
        figure,
        name="slow-brokers",
        title="p99 while a broker is slow",
        subtitle="Thin: one episode each. Thick: their median. Dashed: the upper end of the earlier interval of p99.",
        alt=f"p99 by phase of a slowness, with and without demotion. {result.sentence}",
        caption=result.sentence,
        table=result.rows[["setting", "block", "node_id", *STEPS]],
        note=note,
    )
