"""Load on links, and packets at the brokers, over time during a measurement."""

from __future__ import annotations

from math import isfinite, nan

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_choice
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.formatting import count, number, quantity
from wanbench.methods.lab.utilisation import KEY

PALETTE = tuple(dict.fromkeys(theme.COLOURS.values()))
SINCE = "seconds since the test began"
FILL = "rgba(107, 114, 128, 0.25)"
MBPS = 1e6


def link_utilisation(windows: pd.DataFrame, *, background: pd.DataFrame | None = None) -> go.Figure:
    """
    Load of each direction of a pair over one test; dashed: the link's rate, shaded: background traffic.

    windows: As `utilisation.windows` returns it, of one test.
    background: As `utilisation.background` returns it; the part of the same test is drawn.
    """
    tests = windows[KEY].drop_duplicates()
    if len(tests) != 1:
        raise ParameterError(f"this figure takes one test; the rows are of {len(tests)}")
    test = tests.test_id.iloc[0]
    began_s = windows.start_s.min()
    figure = go.Figure()
    if background is not None:
        part = background.merge(windows[KEY].drop_duplicates(), on=KEY).sort_values("start_s")
        x, y = _steps(part.start_s - began_s, part.end_s - began_s, part.background_bps / MBPS)
        line = {"x": x, "y": y, "mode": "lines", "line": {"width": 0}, "fill": "tozeroy", "fillcolor": FILL}
        figure.add_scatter(**line, name="background (payload)")
    links = list(windows.groupby(["link_from", "link_to"], sort=True))
    for (link_from, link_to), part in links:
        shade = PALETTE[len(figure.data) % len(PALETTE)]
        x, y = _steps(part.start_s - began_s, part.end_s - began_s, part.carried_bps / MBPS)
        name = theme.plain(f"{link_from} to {link_to}")
        figure.add_scatter(x=x, y=y, mode="lines", name=name, line={"color": shade, "width": 2})
    for rate in sorted(windows.rate_bps.dropna().unique()):
        label = f"rate {theme.tick_text(rate, 'bit/s')}"
        figure.add_hline(y=rate / MBPS, line={"color": theme.TEXT, "dash": "dash", "width": 2}, annotation_text=label)
    figure.update_xaxes(title=SINCE, range=[0, windows.end_s.max() - began_s])
    figure.update_yaxes(title="carried (Mbit/s)", rangemode="tozero")
    fullest = windows.loc[windows.utilisation.idxmax()] if windows.utilisation.notna().any() else None
    summary = (
        "No link has a rate."
        if fullest is None
        else f"The fullest window is {quantity(fullest.utilisation, 'fraction')} of the rate, from {fullest.link_from} "
        f"to {fullest.link_to}."
    )
    length_s = number(float(f"{(windows.end_s - windows.start_s).median():.2g}"))
    return theme.finish(
        figure,
        name="link-utilisation",
        title="What the links carried",
        subtitle=f"Bits per second, headers included, in windows of {length_s} s. Dashed: the rate of the link. "
        "Shaded: background traffic as its sender counted it.",
        alt=f"Lines of what {count(len(links), 'link')} carried over test {test}. {summary}",
        caption=f"Traffic on the links during test {test}, from their counters. {summary}",
        table=windows,
    )


def packets_over_time(packets: pd.DataFrame, *, arms: tuple[str, str]) -> go.Figure:
    """
    Packets per second that the brokers' region received (left) and sent (right), one line per test.

    packets: As `utilisation.packets` returns it, and the column arm. With a column counts (`TrialRates.marked`) means
        are of the windows that count.
    arms: The arms to draw; each needs a row.
    """
    panels = {"rx_packets_per_s": "received", "tx_packets_per_s": "sent"}
    figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.1, subplot_titles=list(panels.values()))
    means_of, counts = [], "counts" in packets
    for arm in arms:
        shade = theme.arm_marks(arms)[arm][0]
        rows = packets[packets.arm == arm]
        if rows.empty:
            check_choice("arms", arm, sorted(set(packets.arm)))
        tests = [part for _, part in rows.groupby(KEY, dropna=False)]
        counted = [part[part.counts] for part in tests if part.counts.any()] if counts else tests
        means = {value: np.mean([_mean(part, value) for part in counted] or [nan]) for value in panels}
        means_of.append(f"{arm}: {means['rx_packets_per_s']:,.0f} received and {means['tx_packets_per_s']:,.0f} sent")
        for column, (value, way) in enumerate(panels.items(), 1):
            for nth, part in enumerate(tests):
                x, where = (part.start_s + part.end_s) / 2 - part.start_s.min(), {"row": 1, "col": column}
                style = {"mode": "lines", "line": {"color": shade, "width": 1.5}, "opacity": 0.75}
                style |= {"hovertemplate": f"%{{y:,.0f}} packets/s {way}<extra></extra>", "legendgroup": arm}
                name = theme.plain(f"{arm} ({count(len(tests), 'test')})")
                figure.add_scatter(x=x, y=part[value], name=name, showlegend=column == 1 and nth == 0, **style, **where)
            line = {"color": shade, "dash": "dash", "width": 2}
            if isfinite(means[value]):
                figure.add_hline(y=means[value], line=line, row=1, col=column)
    figure.update_xaxes(title=SINCE)
    figure.update_yaxes(title="packets per second", rangemode="tozero", col=1)
    figure.update_yaxes(rangemode="tozero", col=2)
    summary = "; ".join(means_of)
    within = " in the counted seconds" if counts else ""
    return theme.finish(
        figure,
        name="packets-over-time",
        title="Packets that the brokers' region received and sent",
        subtitle=f"One line per test, from the counters of the links. Dashed: the mean of the tests' means{within}.",
        alt=f"Packets per second over time in two arms. Means{within} of {summary}.",
        caption=f"Packets per second at the brokers, mean over tests{within} of {summary}.",
        table=packets,
        headroom_px=theme.PANEL_TITLES_PX,
    )


def _steps(start, end, values) -> tuple[list, list]:
    """A line that holds each value from its start to its end."""
    x = [time for pair in zip(start, end, strict=True) for time in pair]
    return x, [value for value in values for _ in range(2)]


def _mean(part: pd.DataFrame, value: str) -> float:
    return np.average(part[value], weights=part.end_s - part.start_s)
