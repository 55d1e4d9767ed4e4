"""Statistics under relabelled regions, with the observed one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme
from wanbench.formatting import count, number

from .permutation import Mantel

BINS = 60


def relabelled_correlations(result: Mantel, *, note: str = "") -> go.Figure:
    """Histograms of Pearson's r and Spearman's rho under relabelling, and the observed ones as lines."""
    pairs = f"{count(result.sample.n_pairs, 'pair')} of {count(result.sample.n_regions, 'region')}"
    titles = [f"Pearson r (p = {result.pearson_p.formatted})", f"Spearman rho (p = {result.spearman_p.formatted})"]
    observed = {"pearson": result.pearson.estimate, "spearman": result.spearman.estimate}
    drawn, rows = result.drawn, []
    figure = make_subplots(rows=1, cols=len(titles), subplot_titles=titles, horizontal_spacing=0.08)
    for column, name in enumerate(drawn, start=1):
        heights, edges = np.histogram(drawn[name][np.isfinite(drawn[name])], bins=BINS)
        at = {"row": 1, "col": column}
        bars = {"color": theme.LIGHT, "line": {"width": 0}}
        middles, width = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
        figure.add_bar(x=middles, y=heights, width=width, marker=bars, showlegend=False, **at)
        line = {"color": theme.OUTSIDE, "width": 3}
        ends = {"x": [observed[name]] * 2, "y": [0, heights.max()]}
        figure.add_scatter(**ends, mode="lines", line=line, showlegend=False, **at)
        shown = np.append(edges, observed[name])
        pad = 0.03 * np.ptp(shown)
        figure.update_xaxes(title="correlation", range=[shown.min() - pad, shown.max() + pad], **at)
        bins = zip(edges[:-1], edges[1:], heights, strict=True)
        rows += [{"statistic": name, "from": low, "to": high, "relabellings": n} for low, high, n in bins]
        rows.append({"statistic": f"{name}, observed {number(observed[name])}", "from": observed[name]})
    figure.update_yaxes(title="relabellings", col=1)
    figure.update_layout(bargap=0)
    return theme.finish(
        figure,
        name="relabelled-correlations",
        title="Correlation with distance, against relabelled regions",
        subtitle="Bars: relabelled regions. Line: the data.",
        caption=f"{result.pearson.claim.replace('{}', result.pearson.formatted)}; the bars show "
        f"{count(len(drawn), 'random relabelling')} of the regions ({pairs}).",
        alt=f"Histograms of the correlation under {count(len(drawn), 'relabelling')} of the regions. {result}",
        table=pd.DataFrame(rows),
        headroom_px=20,
        note=note,
    )
