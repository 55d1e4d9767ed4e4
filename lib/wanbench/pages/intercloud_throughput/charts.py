"""A run as it happened: its rounds over time, and its pairs as great circles on a world map."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_columns
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.figures.primitives import draw_pairs, draw_regions, label_pairs, world
from wanbench.formatting import count, decimals, quantity, scale, span
from wanbench.methods.regions.pairs import unordered

ENDS = ("from_region", "to_region")
COLOURS = {"done": theme.WITHIN, "failed": theme.OUTSIDE, "interrupted": theme.UNKNOWN}
CLASSES = 6  # Number of classes: the eye distinguishes no more shades
RAMP = ("#2B1B5A", "#4A3C9A", "#2F7EBC", "#3FB5A3", "#A8C545", "#F2B134")
FEW_LINKS = 60  # Up to this number of pairs lines are thick and nearly opaque; more would hide each other


def rounds(tests: pd.DataFrame) -> go.Figure:
    """
    Draw a bar for each region and test of table `tests`: bars of a region overlap if it was in two tests at once.

    Interrupted tests have no end, and are drawn as points at their start.
    """
    if tests.empty:
        raise ParameterError("table tests has no rows; allowed: one or more.")
    start_s = (tests.started_at_utc - tests.started_at_utc.min()).dt.total_seconds()
    length_s = (tests.ended_at_utc - tests.started_at_utc).dt.total_seconds()
    regions = sorted({*tests.from_region, *tests.to_region})
    both = pd.concat([tests.assign(region=tests[end], start_s=start_s, length_s=length_s) for end in ENDS])
    figure = go.Figure()
    for outcome, colour in COLOURS.items():
        part = both[both.outcome == outcome]
        if part.empty:
            continue
        figure.add_bar(
            base=part.start_s,
            x=part.length_s.fillna(0.0),
            y=part.region,
            orientation="h",
            name=outcome,
            marker={"color": colour, "line": {"color": "white", "width": 0.5}, "opacity": 0.7},
            text=[
                f"round {number}: {theme.plain(a)} to {theme.plain(b)}"
                for number, a, b in zip(part["round"], part.from_region, part.to_region, strict=True)
            ],
            textposition="none",
            hovertemplate="%{text}<br>from %{base:.1f} s, %{x:.1f} s<extra></extra>",
        )
    overlaps = overlapping(tests)
    verdict = f"{count(overlaps, 'overlap')} of tests" if overlaps else "No region was in two tests at once"
    figure.update_layout(barmode="overlay", bargap=0.2, height=max(theme.HEIGHT_PX, 150 + 17 * len(regions)))
    figure.update_xaxes(title="time since the first test started (s)")
    figure.update_yaxes(categoryorder="array", categoryarray=regions[::-1], showgrid=False)
    n_rounds = count(tests["round"].nunique(), "round")
    basis = f"{count(len(tests), 'test')} of {count(len(regions), 'region')} in {n_rounds}"
    columns = ["test_id", "attempt", "round", "from_region", "to_region", "outcome"]
    return theme.finish(
        figure,
        name="rounds",
        title="Rounds as they happened",
        subtitle=f"One bar per region and test. {verdict}.",
        alt=f"Timeline of {basis}. {verdict}.",
        caption=f"When each region took part in a test: {basis}. {verdict}.",
        table=tests[columns].assign(start_s=start_s, length_s=length_s),
    )


def overlapping(tests: pd.DataFrame) -> int:
    """Return the number of times that a test of a region starts before an earlier one has ended."""
    ended = tests.dropna(subset="ended_at_utc")
    both = pd.concat([ended.assign(region=ended[end]) for end in ENDS]).sort_values(["region", "started_at_utc"])
    before = both.groupby("region").ended_at_utc.cummax().groupby(both.region).shift()
    return int((both.started_at_utc < before).sum())


def link_map(pairs: pd.DataFrame, regions: pd.DataFrame) -> go.Figure:
    """
    Draw the measured pairs as great circles on a world map, coloured by throughput.

    Colours are classes with equal numbers of pairs; darker is worse.
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
        title="Throughput between regions",
        subtitle="One great circle per pair of regions (geometric mean of both directions); darker is worse.",
        alt=f"World map of {count(len(frame), 'pair')} between {count(sample.n_regions, 'region')}; throughput from "
        f"{low} to {high}, median {middle}.",
        caption=f"Throughput of {count(len(frame), 'pair')}, from {low} to {high}, median {middle}. "
        "Coastline: Natural Earth.",
        table=frame[["region_a", "region_b", "cloud_pair", "distance_km", "throughput_bps"]],
    )
