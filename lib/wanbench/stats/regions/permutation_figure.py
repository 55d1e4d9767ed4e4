"""Statistics under relabelled regions, with the observed one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...figures import theme
from ...formatting import count, number
from .covariates import CovariateFit
from .permutation import Mantel

BINS = 60
SUBTITLE = "Bars: what relabelled regions give. Line: the data."


def relabelled_correlations(found: Mantel, *, note: str = "") -> go.Figure:
    """Histograms of Pearson's r and Spearman's rho under relabelling, and the observed ones as lines."""
    observed = {name: getattr(found, name).estimate for name in ("pearson", "spearman")}
    p = {name: getattr(found, f"{name}_p").written for name in observed}
    titles = [
        f"{each} (p = {p[name]})" for name, each in (("pearson", "Pearson r"), ("spearman", "Spearman rho"))
    ]
    return theme.finish(
        _histograms(found.drawn, observed, titles, "correlation"),
        name="relabelled-correlations",
        title="Correlation with distance, against relabelled regions",
        subtitle=SUBTITLE,
        alt=f"Histograms of correlations under {count(len(found.drawn), 'relabelling')} of the regions. {found}",
        caption=f"{found.pearson.claim.replace('{}', found.pearson.written)}; the bars show "
        f"{count(len(found.drawn), 'random relabelling')} of the regions "
        f"({count(found.sample.n_pairs, 'pair')} of {count(found.sample.n_regions, 'region')}).",
        table=_behind(found.drawn, observed),
        note=note,
        headroom_px=20,
    )


def relabelled_covariates(found: CovariateFit, *, note: str = "") -> go.Figure:
    """Histograms of each covariate's t statistic under relabelling, and the observed one as a line."""
    titles = [f"{theme.plain(name)} (p = {found.p_values[name].written})" for name in found.drawn]
    basis = next(iter(found.p_values.values()))
    return theme.finish(
        _histograms(found.drawn, found.observed, titles, "t statistic"),
        name="relabelled-covariates",
        title="Each covariate, against relabelled regions",
        subtitle=SUBTITLE,
        alt=f"Histograms of t statistics under {count(len(found.drawn), 'relabelling')} of the regions. {found}",
        caption=f"What the other covariates leave of each, under {count(len(found.drawn), 'random relabelling')} of "
        f"the regions ({count(basis.n, 'pair')} of {count(basis.n_regions, 'region')}).",
        table=_behind(found.drawn, found.observed),
        note=note,
        headroom_px=20,
    )


def _histograms(drawn: pd.DataFrame, observed: dict[str, float], titles: list[str], axis: str) -> go.Figure:
    figure = make_subplots(rows=1, cols=len(titles), subplot_titles=titles, horizontal_spacing=0.08)
    for column, name in enumerate(drawn, start=1):
        heights, edges = _counted(drawn[name])
        bars = {"color": theme.LIGHT, "line": {"width": 0}}
        middles, width = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
        figure.add_bar(x=middles, y=heights, width=width, marker=bars, showlegend=False, row=1, col=column)
        line = {"color": theme.OUTSIDE, "width": 3}
        ends = [0, heights.max() if len(heights) else 1]
        at = [observed[name]] * 2
        figure.add_scatter(x=at, y=ends, mode="lines", line=line, showlegend=False, row=1, col=column)
        shown = np.append(edges, observed[name])
        pad = 0.03 * np.ptp(shown)
        span = [shown.min() - pad, shown.max() + pad]
        figure.update_xaxes(title=axis, range=span, row=1, col=column)
    figure.update_yaxes(title="relabellings", col=1)
    figure.update_layout(bargap=0)
    return figure


def _counted(values: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    return np.histogram(values[np.isfinite(values)], bins=BINS)


def _behind(drawn: pd.DataFrame, observed: dict[str, float]) -> pd.DataFrame:
    """The bars: statistic, from, to, relabellings; and the observed values."""
    rows = []
    for name in drawn:
        heights, edges = _counted(drawn[name])
        bars = zip(edges[:-1], edges[1:], heights, strict=True)
        rows += [{"statistic": name, "from": low, "to": high, "relabellings": n} for low, high, n in bars]
        rows.append({"statistic": f"{name}, observed {number(observed[name])}", "from": observed[name]})
    return pd.DataFrame(rows)
