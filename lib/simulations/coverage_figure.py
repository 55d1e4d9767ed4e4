"""Draw coverage per setting with its interval, over the band in which it should be."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import refusal
from wanbench.figures import primitives, theme

from .simulation import MAIN, NAIVE, describe
from .summaries import BAND

ROW_PX = 20
"""Height of a setting; the smallest at which its label is readable."""
MIN_HEIGHT_PX = 260
FRAME_PX = 170
"""Height of titles, legend and axis."""
STYLES = ((theme.WITHIN, "circle"), (theme.OUTSIDE, "x"), ("#009E73", "diamond"), ("#882288", "square"))


def coverage(table: pd.DataFrame, *, title: str, methods=None, name: str = "coverage", note: str = "") -> go.Figure:
    """
    Draw coverage per setting over the band of 93 to 97 %, with a panel per quantity and a colour per method.

    Parameters
    ----------
    table : DataFrame
        A table of `run` or `read_all`.
    methods : sequence of str
        At most four methods. Default: the interval given and the naive one if the table has them, or else the first
        four.
    """
    present = list(dict.fromkeys(table.method))
    methods = list(methods or [one for one in (MAIN, NAIVE) if one in present] or present[: len(STYLES)])
    if not set(methods) <= set(present) or len(methods) > len(STYLES):
        raise refusal("methods", methods, f"at most {len(STYLES)} of {', '.join(present)}")
    drawn = table[table.method.isin(methods)]
    drawn = drawn.assign(setting=drawn.setting.map(describe))
    quantities, settings = list(dict.fromkeys(drawn.quantity)), list(dict.fromkeys(drawn.setting))
    figure = make_subplots(1, len(quantities), shared_yaxes=True, subplot_titles=quantities, horizontal_spacing=0.03)
    for column, quantity in enumerate(quantities, start=1):
        for method, (colour, symbol) in zip(methods, STYLES, strict=False):
            rows = drawn[(drawn.quantity == quantity) & (drawn.method == method)]
            primitives.interval_points(
                figure,
                rows.setting,
                rows.coverage,
                rows.coverage_low,
                rows.coverage_high,
                marker={"color": colour, "symbol": symbol, "size": 8},
                bar={"thickness": 1.2, "width": 0},
                name=method,
                legendgroup=method,
                showlegend=column == 1,
                hovertemplate="%{x:.1%}<br>%{y}<extra>" + theme.plain(method) + "</extra>",
                row=1,
                col=column,
            )
        figure.add_vrect(*BAND, fillcolor=primitives.BAND_COLOUR, line_width=0, layer="below", row=1, col=column)
    figure.update_xaxes(tickformat=".0%", title="covered")
    figure.update_yaxes(categoryorder="array", categoryarray=settings[::-1], ticks="")
    figure.update_annotations(font_size=13)
    ranges = _ranges(drawn, methods)
    theme.finish(
        figure,
        name=name,
        title=theme.headline(f"{title} {ranges.partition(': ')[2].partition(';')[0]}", title),
        subtitle="Share of simulated data sets whose 95 % interval contains the true value; bars: 95 % intervals of "
        "that share; shaded: 93 to 97 %.",
        alt=f"{title}: coverage of {', '.join(quantities)} over {len(settings)} settings. {ranges}",
        caption=f"Coverage of 95 % intervals. {ranges}",
        table=drawn,
        note=note,
        headroom_px=18,
    )
    height = max(MIN_HEIGHT_PX, FRAME_PX + ROW_PX * len(settings))
    return figure.update_layout(height=height, legend=theme.LEGEND_ON_TOP)


def _ranges(drawn: pd.DataFrame, methods: list[str]) -> str:
    ranges = 100 * drawn.groupby("method").coverage.agg(["min", "max"])
    return "; ".join(f"{name}: {ranges['min'][name]:.1f} to {ranges['max'][name]:.1f} %" for name in methods) + "."
