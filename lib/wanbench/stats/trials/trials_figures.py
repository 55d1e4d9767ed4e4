"""Trials in the order in which they were measured, two links compared, and the shares of producers."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from scipy import stats

from ...figures import theme
from ...formatting import count, percent, quantity
from .rates import MEASURED, TrialRates
from .two_links import SAID, TwoLinks

SHADES = (theme.OUTSIDE, theme.WITHIN, "#009E73", "#882288", "#D9A300", "#62B9EA")
SYMBOLS = ("diamond", "circle", "square", "triangle-up", "x", "star")
HEADROOM_PX = 24
LEVEL = 0.95
MOST_SETTINGS = len(SHADES)


def trials_in_order(found: TrialRates, value: str = "batches_per_s", *, note: str = "") -> go.Figure:
    """Every trial as a point, in the order of measuring, with the mean of each setting and its interval."""
    rates = found.rates
    names = list(dict.fromkeys(rates.setting.astype(str)))
    figure = go.Figure()
    _blocks(figure, rates)
    for k, name in enumerate(names):
        part = rates[rates.setting.astype(str) == name]
        shade, symbol = SHADES[k % MOST_SETTINGS], SYMBOLS[k % MOST_SETTINGS]
        figure.add_scatter(**_points(part, value, name, shade, symbol))
        if len(names) <= MOST_SETTINGS:
            _mean(figure, part[value], [rates.order.min(), rates.order.max()], shade)
    figure.update_xaxes(title="trial, in the order of measuring (grey: every second block)")
    figure.update_yaxes(
        title=theme.plain(f"{SAID.get(value, value)} ({MEASURED.get(value, '')})"), rangemode="tozero"
    )
    return theme.finish(
        figure,
        name="trials-in-order",
        title=f"What each trial reached: {SAID.get(value, value)}",
        subtitle=f"One point per trial. Lines: mean of a setting; bands: its {percent(LEVEL)} interval (trials as "
        "units).",
        alt=f"Trials in the order of measuring. {found}",
        caption=" ".join(
            [
                f"{found.rule}. {count(len(rates), 'trial')}.",
                *(f"Caution: {each}." for each in found.warnings()),
            ]
        ),
        table=rates[["order", "block", "setting", "test_id", value, "n_seconds", "counted_by"]],
        note=note,
    )


def two_links(found: TwoLinks, *, note: str = "") -> go.Figure:
    """Left every trial, joined with its pair; right the ratio by each method."""
    figure = make_subplots(
        rows=1,
        cols=2,
        column_widths=[0.6, 0.4],
        horizontal_spacing=0.2,
        subplot_titles=[
            "what each trial reached",
            f"{theme.plain(found.names[1])} over {theme.plain(found.names[0])}",
        ],
    )
    for pair in found.pairs.itertuples():
        figure.add_scatter(
            x=[pair.order_a, pair.order_b],
            y=[pair.a, pair.b],
            mode="lines",
            line={"color": theme.GRID, "width": 2},
            hoverinfo="skip",
            showlegend=False,
            row=1,
            col=1,
        )
    for name, shade, symbol in zip(found.names, SHADES, SYMBOLS, strict=False):
        part = found.trials[found.trials.link == name]
        figure.add_scatter(**_points(part, found.value, name, shade, symbol), row=1, col=1)
        ends = [found.trials.order.min(), found.trials.order.max()]
        _mean(figure, part[found.value], ends, shade, row=1, col=1)
    unit = MEASURED.get(found.value, "")
    figure.update_xaxes(title="trial, in the order of measuring", row=1, col=1)
    figure.update_yaxes(
        title=theme.plain(f"{SAID.get(found.value, found.value)} ({unit})"), rangemode="tozero", row=1, col=1
    )
    rows = _methods(found)
    _ratios(figure, rows)
    level = percent(found.ratio.level)
    return theme.finish(
        figure,
        name="two-links",
        title=f"{found.names[1]} against {found.names[0]}: {SAID.get(found.value, found.value)}",
        subtitle=f"Left: a point per trial, lines join pairs, bands are {level} intervals of the mean. Right: the "
        f"ratio with its {level} interval by each method; hollow: every second taken as independent. Dashed: no "
        "difference.",
        alt=f"Two links compared. {found}",
        caption=found.wording(),
        table=pd.concat(
            [
                found.trials[["order", "block", "link", found.value]],
                pd.DataFrame(rows, columns=["method", "ratio", "low", "high"]),
            ]
        ),
        note=note,
        headroom_px=HEADROOM_PX,
    )


def _methods(found: TwoLinks) -> list[tuple]:
    single, rows = found.by_trial.means, []
    if found.paired is not None:
        rows.append(("in pairs", found.ratio.estimate, found.ratio.low, found.ratio.high))
    if found.drift_free is not None:
        each = found.drift_free
        rows.append(("without drift", each.estimate, each.low, each.high))
    rows.append(("trials, unpaired", single.estimate, single.low, single.high))
    if len(found.seconds) > len(found.trials):
        rows.append(("seconds", single.estimate, single.naive.low, single.naive.high))
    return rows


def _ratios(figure: go.Figure, rows) -> None:
    for k, (name, estimate, low, high) in enumerate(rows):
        hollow = name == "seconds"
        shade = theme.LIGHT if hollow else theme.FIT
        bar = {"type": "data", "symmetric": False, "array": [high - estimate], "arrayminus": [estimate - low]}
        figure.add_scatter(
            x=[estimate],
            y=[k],
            mode="markers",
            marker={"size": 11, "color": shade, "symbol": "circle-open" if hollow else "circle"},
            error_x=bar | {"thickness": 2, "width": 6, "color": shade} if np.isfinite(low) else None,
            hovertemplate=f"{quantity(estimate, 'times', low, high)}<extra></extra>",
            showlegend=False,
            row=1,
            col=2,
        )
    ticks = {"tickvals": list(range(len(rows))), "ticktext": [row[0] for row in rows]}
    figure.update_yaxes(**ticks, range=[len(rows) - 0.5, -0.5], zeroline=False, row=1, col=2)
    figure.update_xaxes(title="times", row=1, col=2)
    figure.add_vline(x=1, line={"color": theme.LIGHT, "dash": "dash", "width": 2}, row=1, col=2)


def _points(part: pd.DataFrame, value: str, name: str, shade: str, symbol: str) -> dict:
    shown = part[["test_id", "n_seconds", "counted_by"]].itertuples(index=False)
    text = [theme.plain(f"{each.test_id}: {each.n_seconds} s by {each.counted_by}") for each in shown]
    return {
        "x": part.order,
        "y": part[value],
        "mode": "markers",
        "name": f"{theme.plain(name)} ({count(len(part), 'trial')})",
        "marker": {"size": 9, "color": shade, "symbol": symbol, "opacity": 0.85},
        "text": text,
        "hovertemplate": "%{text}<br>%{y:.4g}<extra></extra>",
    }


def _mean(figure: go.Figure, values: pd.Series, ends, shade: str, **where) -> None:
    values = values.dropna().to_numpy(dtype=float)
    if not len(values):
        return
    mean, x = float(values.mean()), [float(each) for each in ends]
    line = {"mode": "lines", "line": {"color": shade, "width": 2}, "showlegend": False, "hoverinfo": "skip"}
    figure.add_scatter(x=x, y=[mean] * 2, **line, **where)
    if len(values) > 1:
        half = stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1) / sqrt(len(values))
        figure.add_scatter(
            x=[*x, *x[::-1]],
            y=[mean - half] * 2 + [mean + half] * 2,
            fill="toself",
            fillcolor=shade,
            opacity=0.15,
            line={"width": 0},
            mode="lines",
            showlegend=False,
            hoverinfo="skip",
            **where,
        )


def _blocks(figure: go.Figure, rates: pd.DataFrame) -> None:
    """Every second block in grey, if the trials of a block were measured together."""
    known = rates[rates.block.notna()]
    if not len(known) or known.block.nunique() < 2:
        return
    ends = known.groupby(["run_id", "block"]).order.agg(["min", "max"]).sort_values("min")
    if (ends["min"].to_numpy()[1:] <= ends["max"].to_numpy()[:-1]).any():
        return
    for _, row in ends.iloc[1::2].iterrows():
        figure.add_vrect(
            x0=row["min"] - 0.5, x1=row["max"] + 0.5, fillcolor=theme.GRID, opacity=0.45, line_width=0, layer="below"
        )  # fmt: skip
