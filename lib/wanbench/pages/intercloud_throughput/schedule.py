"""The rounds of a run as they happened: when each region was in a test."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.formatting import count

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
