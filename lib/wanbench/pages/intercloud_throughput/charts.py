"""Draw the pairs of a run as great circles on a world map, coloured by throughput."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_columns
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.figures.primitives import draw_pairs, draw_regions, label_pairs, world
from wanbench.formatting import count, decimals, quantity, scale, span
from wanbench.methods.regions.pairs import unordered

CLASSES = 6  # Number of colours: the eye distinguishes no more shades
RAMP = ("#2B1B5A", "#4A3C9A", "#2F7EBC", "#3FB5A3", "#A8C545", "#F2B134")
FEW_LINKS = 60  # Up to this number of pairs lines are thick and nearly opaque; more would hide each other


@theme.styled
def link_map(pairs: pd.DataFrame, regions: pd.DataFrame) -> go.Figure:
    """
    Draw the measured pairs as great circles on a world map, in up to six colours by throughput; darker is slower.
    """
    sample = unordered(pairs, "throughput_bps", combine="geometric mean")
    places = check_columns("regions", regions, ["name"]).set_index("name")
    missing = sorted(set(sample.regions) - set(places.index))
    if missing:
        raise ParameterError(
            f"table regions lacks {count(len(missing), 'region')} of the pairs, such as {', '.join(missing[:3])}."
        )
    frame = sample.frame.rename(columns={"value": "throughput_bps"})
    bps, figure = frame.throughput_bps, world()
    classes = min(CLASSES, bps.nunique())
    edges = np.quantile(bps, np.linspace(0, 1, classes + 1))
    number = np.clip(np.searchsorted(edges, bps, side="right") - 1, 0, classes - 1)
    factor, unit = scale("bit/s", float(bps.median()))
    few = len(frame) < FEW_LINKS
    for k in range(classes):
        part = frame[number == k]
        if part.empty:
            continue
        ends = edges[k : k + 2] / factor
        line = {"color": RAMP[round(k * (len(RAMP) - 1) / max(classes - 1, 1))], "width": 2.5 if few else 1}
        name = f"{span(*ends, max(decimals(ends[1]), 0))} {unit}"
        draw_pairs(figure, part, places, name=name, line=line, opacity=0.85 if few else 0.35)
    label_pairs(figure, frame, places, [quantity(value, "bit/s") for value in bps])
    draw_regions(figure, places.loc[sample.regions].reset_index())
    low, middle, high = (quantity(float(value), "bit/s") for value in (bps.min(), bps.median(), bps.max()))
    return theme.finish(
        figure,
        name="link-map-throughput",
        title=f"Throughput from {low} to {high} between {count(sample.n_regions, 'region')}",
        subtitle="One great circle per pair of regions (geometric mean of both directions); darker is slower.",
        alt=f"World map of {count(len(frame), 'pair')} between {count(sample.n_regions, 'region')}; throughput from "
        f"{low} to {high}, median {middle}.",
        caption=f"Throughput of {count(len(frame), 'pair')}, from {low} to {high}, median {middle}. "
        "Coastline: Natural Earth.",
        table=frame[["region_a", "region_b", "cloud_pair", "distance_km", "throughput_bps"]],
    )
