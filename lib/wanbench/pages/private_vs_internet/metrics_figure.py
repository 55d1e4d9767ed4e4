"""Draw the load of links over time during a test."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.formatting import count, number, quantity
from wanbench.methods.lab.utilisation import KEY

PALETTE = tuple(dict.fromkeys(theme.COLOURS.values()))
SINCE = "seconds since the test began"
FILL = "rgba(107, 114, 128, 0.25)"
MBPS = 1e6


@theme.styled
def link_utilisation(windows: pd.DataFrame, *, background: pd.DataFrame | None = None) -> go.Figure:
    """
    Draw the load of each direction of a pair during one test, the rate of the link, and the background traffic.

    windows: The result of `utilisation.windows` for one test.
    background: The result of `utilisation.background`; rows of other tests are ignored.
    """
    tests = windows[KEY].drop_duplicates()
    if len(tests) != 1:
        raise ParameterError(f"windows has {len(tests)} tests; allowed: one.")
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
        title=theme.headline(summary.partition(", from ")[0], "What the links carried"),
        subtitle=f"Bits per second, headers included, in windows of {length_s} s. Dashed: the rate of the link. "
        "Shaded: background traffic as its sender counted it.",
        alt=f"Lines of what {count(len(links), 'link')} carried over test {test}. {summary}",
        caption=f"Traffic on the links during test {test}, from their counters. {summary}",
        table=windows,
    )


def _steps(start, end, values) -> tuple[list, list]:
    """Return the points of a line that holds each value from its start to its end."""
    x = [time for pair in zip(start, end, strict=True) for time in pair]
    return x, [value for value in values for _ in range(2)]
