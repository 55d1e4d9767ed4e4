"""Drawing primitives: which numbers they hand to Plotly."""

import numpy as np
import plotly.graph_objects as go
from simulations.latency_samples import of_values

from wanbench.figures import primitives, theme
from wanbench.pages.tail_latency.quantiles import quantiles


def test_a_bar_reaches_both_ends_and_leaves_out_open_ones():
    bar = primitives.interval_bar([1.0, 2.0], [0.5, -np.inf], [np.nan, 5.0], width=0)
    assert bar["arrayminus"] == [0.5, 0.0] and bar["array"] == [0.0, 3.0]
    assert bar["width"] == 0 and bar["symmetric"] is False
    assert primitives.interval_bar([1.0], [np.nan], [np.inf]) is None


def test_points_have_bars_along_their_values():
    figure = go.Figure()
    marker = {"color": theme.FIT}
    primitives.interval_points(figure, [0, 1], [3.0, 4.0], [2.0, 3.0], [5.0, 6.0], marker=marker, text=["a", "b"])
    primitives.interval_points(figure, [0], [3.0], [2.0], [5.0], marker=marker, vertical=True, name="up")
    across, up = figure.data
    assert across.x == (3.0, 4.0) and across.y == (0, 1) and across.error_x.array == (2.0, 2.0)
    assert across.error_x.color == theme.FIT and across.hovertemplate.startswith("%{text}")
    assert up.y == (3.0,) and up.error_y.arrayminus == (1.0,) and up.name == "up"


def test_estimates_are_drawn_with_the_text_to_quote():
    result = quantiles(of_values([np.random.default_rng(0).lognormal(3, 0.3, 5_000)]), (0.5, 0.9))
    figure = go.Figure()
    primitives.estimate_points(figure, (0, 1), result.estimates, marker={"color": theme.FIT})
    [points] = figure.data
    assert points.x == tuple(e.estimate for e in result.estimates)
    assert points.text[0] == f"{result[0.5].formatted} ({result[0.5].formatted_interval})"


def test_a_band_a_line_and_labels():
    figure = go.Figure()
    primitives.band(figure, [0, 1], [1, 2], [3, 4])
    primitives.band(figure, [0, 1], [1, np.nan], [3, 4])
    primitives.reference_line(figure, x=1)
    primitives.reference_line(figure, y=2, line={"dash": "dot"})
    primitives.label_rows(figure, ["mean", "median"])
    [band] = figure.data
    assert band.fill == "toself" and list(band.x) == [0, 1, 1, 0] and list(band.y) == [3, 4, 2, 1]
    vertical, horizontal = figure.layout.shapes
    assert (vertical.x0, vertical.line.dash) == (1, "dash") and (horizontal.y0, horizontal.line.dash) == (2, "dot")
    assert figure.layout.yaxis.ticktext == ("mean", "median") and figure.layout.yaxis.range == (1.5, -0.5)
