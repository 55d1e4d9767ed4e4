"""A run as it happened: its rounds over time, and its pairs as great circles on a world map."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_choice, check_columns
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.figures.map import draw_regions, unit_vectors, world
from wanbench.formatting import count, decimals, quantity, scale, span
from wanbench.methods.regions.pairs import unordered

ENDS = ("from_region", "to_region")
COLOURS = {"done": theme.WITHIN, "failed": theme.OUTSIDE, "interrupted": theme.UNKNOWN}


def rounds(tests: pd.DataFrame, *, note: str = "") -> go.Figure:
    """
    A bar for each region and test of table `tests`: bars of a region overlap if it was in two tests at once.

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
        note=note,
    )


def overlapping(tests: pd.DataFrame) -> int:
    """The number of times that a test of a region starts before an earlier one has ended."""
    ended = tests.dropna(subset="ended_at_utc")
    both = pd.concat([ended.assign(region=ended[end]) for end in ENDS]).sort_values(["region", "started_at_utc"])
    before = both.groupby("region").ended_at_utc.cummax().groupby(both.region).shift()
    return int((both.started_at_utc < before).sum())


VALUES = {
    # column: (title, unit, how both directions combine)
    "throughput_bps": ("throughput", "bit/s", "geometric mean"),
    "rtt_ms": ("round-trip time", "ms", "median"),
}
CLASSES = 6
"""Number of classes: the eye distinguishes no more shades."""
RAMP = ("#2B1B5A", "#4A3C9A", "#2F7EBC", "#3FB5A3", "#A8C545", "#F2B134")
FEW_LINKS = 60
"""Up to this number of pairs lines are thick and nearly opaque; more would hide each other."""


def link_map(pairs: pd.DataFrame, regions: pd.DataFrame, *, value: str = "throughput_bps", note: str = "") -> go.Figure:
    """
    The measured pairs as great circles on a world map, coloured by throughput or RTT.

    Parameters
    ----------
    pairs, regions : DataFrame
        Tables of these names.
    value : str
        "throughput_bps" or "rtt_ms". Colours are classes with equal numbers of pairs; darker is worse.
    """
    title, unit, combine = VALUES[check_choice("value", value, VALUES)]
    sample = unordered(pairs, value, combine=combine)
    by_name = check_columns("regions", regions, ["name"]).set_index("name")
    missing = sorted(set(sample.regions) - set(by_name.index))
    if missing:
        raise ParameterError(
            f"table regions lacks {count(len(missing), 'region')} of the pairs, such as {', '.join(missing[:3])}."
        )
    frame = sample.frame.rename(columns={"value": value})
    figure = world()
    _links(figure, frame, by_name, value, unit)
    draw_regions(figure, by_name.loc[sample.regions].reset_index())
    middle = quantity(float(frame[value].median()), unit) if len(frame) else "unknown"
    low, high = (quantity(float(end), unit) for end in (frame[value].min(), frame[value].max()))
    return theme.finish(
        figure,
        name=f"link-map-{title.replace(' ', '-').replace('round-trip-time', 'rtt')}",
        title=f"{title.capitalize()} between regions",
        subtitle=f"One great circle per pair of regions ({combine} of both directions); darker is worse.",
        alt=f"World map of {count(len(frame), 'pair')} between {count(sample.n_regions, 'region')}; {title} from "
        f"{low} to {high}, median {middle}.",
        caption=f"{title.capitalize()} of {count(len(frame), 'pair')}, from {low} to {high}, median "
        f"{middle}. Coastline: Natural Earth.",
        table=frame[["region_a", "region_b", "cloud_pair", "distance_km", value]],
        note=note,
    )


def _links(figure: go.Figure, frame: pd.DataFrame, by_name: pd.DataFrame, value: str, unit: str) -> None:
    """One trace per class of value, and a point halfway along each link for its label."""
    if frame.empty:
        return
    classes = min(CLASSES, frame[value].nunique())
    edges = np.quantile(frame[value], np.linspace(0, 1, classes + 1))
    number = np.clip(np.searchsorted(edges, frame[value], side="right") - 1, 0, classes - 1)
    few = len(frame) < FEW_LINKS
    factor, scaled = scale(unit, float(frame[value].median()))
    # The worst class comes first: the lowest throughput, but the highest RTT.
    worst_first = list(range(classes))[:: -1 if value == "rtt_ms" else 1]
    for rank, class_number in enumerate(worst_first):
        part = frame[number == class_number]
        if part.empty:
            continue
        ends = edges[class_number : class_number + 2] / factor
        longitude, latitude = (
            [
                end
                for link in zip(by_name[axis][part.region_a], by_name[axis][part.region_b], strict=True)
                for end in (*link, None)
            ]
            for axis in ("longitude_deg", "latitude_deg")
        )
        figure.add_scattergeo(
            lon=longitude,
            lat=latitude,
            mode="lines",
            name=f"{span(*ends, max(decimals(ends[1]), 0))} {scaled}",
            line={"color": RAMP[round(rank * (len(RAMP) - 1) / max(classes - 1, 1))], "width": 2.5 if few else 1},
            opacity=0.85 if few else 0.35,
            hoverinfo="skip",
        )
    _halfway(figure, frame, by_name, value, unit)


def _halfway(figure: go.Figure, frame: pd.DataFrame, by_name: pd.DataFrame, value: str, unit: str) -> None:
    ends = [unit_vectors(by_name.loc[frame[name]]) for name in ("region_a", "region_b")]
    middle = ends[0] + ends[1]
    text = [
        f"{theme.plain(row.region_a)} – {theme.plain(row.region_b)}<br>{quantity(getattr(row, value), unit)}"
        for row in frame.itertuples()
    ]
    figure.add_scattergeo(
        lon=np.degrees(np.arctan2(middle[:, 1], middle[:, 0])).round(2),
        lat=np.degrees(np.arctan2(middle[:, 2], np.hypot(middle[:, 0], middle[:, 1]))).round(2),
        mode="markers",
        marker={"size": 6, "opacity": 0},
        text=text,
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )
