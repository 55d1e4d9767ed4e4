"""How often intervals cover, per setting: with the interval of that share, and the band it should lie in."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ..errors import ParameterError
from ..figures import theme
from ..stats.lab.verdicts_figure import LEGEND_ON_TOP
from .study import MAIN, NAIVE, describe
from .verdicts import BAND

ROW_PX, LEAST_PX = 20, 260
STYLES = ((theme.WITHIN, "circle"), (theme.OUTSIDE, "x"), ("#009E73", "diamond"), ("#882288", "square"))
BAND_COLOUR = "rgba(0, 114, 178, 0.12)"


def coverage(
    table: pd.DataFrame, *, title: str, methods=None, name: str = "coverage", note: str = ""
) -> go.Figure:
    """
    Coverage per setting, a panel per quantity, a colour per method, over the band of 93 to 97 %.

    Parameters
    ----------
    table : DataFrame
        As `validity.run` returns and `validity.read` reads.
    methods : sequence of str
        What to show, at most four; default the interval given and the naive one, else the first four there are.
    """
    found = list(dict.fromkeys(table.method))
    methods = list(methods or [one for one in (MAIN, NAIVE) if one in found] or found[: len(STYLES)])
    unknown = [one for one in methods if one not in found]
    if unknown or len(methods) > len(STYLES):
        raise ParameterError(
            f"methods {', '.join(methods)}: allowed are at most {len(STYLES)} of {', '.join(found)}"
        )
    drawn = table[table.method.isin(methods)]
    drawn = drawn.assign(setting=drawn.setting.map(describe))
    quantities, settings = list(dict.fromkeys(drawn.quantity)), list(dict.fromkeys(drawn.setting))
    figure = make_subplots(
        1, len(quantities), shared_yaxes=True, subplot_titles=quantities, horizontal_spacing=0.03
    )
    for column, quantity in enumerate(quantities, start=1):
        for method, (colour, symbol) in zip(methods, STYLES, strict=False):
            rows = drawn[(drawn.quantity == quantity) & (drawn.method == method)]
            figure.add_scatter(
                x=rows.coverage,
                y=rows.setting,
                mode="markers",
                name=method,
                legendgroup=method,
                showlegend=column == 1,
                marker={"color": colour, "symbol": symbol, "size": 8},
                error_x={
                    "type": "data",
                    "array": rows.coverage_high - rows.coverage,
                    "arrayminus": rows.coverage - rows.coverage_low,
                    "thickness": 1.2,
                    "width": 0,
                },
                hovertemplate="%{x:.1%}<br>%{y}<extra>" + theme.plain(method) + "</extra>",
                row=1,
                col=column,
            )
        figure.add_vrect(*BAND, fillcolor=BAND_COLOUR, line_width=0, layer="below", row=1, col=column)
    figure.update_xaxes(tickformat=".0%", title="covered")
    figure.update_yaxes(categoryorder="array", categoryarray=settings[::-1], ticks="")
    figure.update_annotations(font_size=13)
    finished = theme.finish(
        figure,
        name=name,
        title=title,
        subtitle="Share of simulated data sets whose 95 % interval holds the known answer; bars: 95 % intervals of that"
        " share; shaded: 93 to 97 %.",
        alt=f"{title}: coverage of {', '.join(quantities)} over {len(settings)} settings. "
        + _said(drawn, methods),
        caption=f"Coverage of 95 % intervals. {_said(drawn, methods)}",
        table=drawn,
        note=note,
        headroom_px=18,
    )
    return finished.update_layout(height=max(LEAST_PX, 170 + ROW_PX * len(settings)), legend=LEGEND_ON_TOP)


def _said(drawn: pd.DataFrame, methods: list[str]) -> str:
    said = []
    for method in methods:
        covered = drawn.coverage[drawn.method == method]
        said.append(f"{method}: {100 * covered.min():.1f} to {100 * covered.max():.1f} %")
    return "; ".join(said) + "."
