"""When each region was in a test: the rounds of a run as they happened."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ..errors import ParameterError
from ..formatting import count
from . import theme

COLOURS = {"done": theme.WITHIN, "failed": theme.OUTSIDE, "interrupted": theme.UNKNOWN}


def rounds(tests: pd.DataFrame, *, note: str = "") -> go.Figure:
    """
    A bar for each region and test of table `tests`: a region that was in two tests at once would overlap itself.

    Tests without an end (interrupted) are drawn as points at their start.
    """
    if tests.empty:
        raise ParameterError("there are no tests to draw")
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
            text=[f"round {row['round']}: {_label(row)}" for _, row in part.iterrows()],
            textposition="none",
            hovertemplate="%{text}<br>from %{base:.1f} s, %{x:.1f} s<extra></extra>",
        )
    overlaps = overlapping(tests)
    said = "No region was in two tests at once" if not overlaps else f"{count(overlaps, 'overlap')} of tests"
    figure.update_layout(barmode="overlay", bargap=0.2, height=max(theme.HEIGHT_PX, 150 + 17 * len(regions)))
    figure.update_xaxes(title="time since the first test started (s)")
    figure.update_yaxes(categoryorder="array", categoryarray=regions[::-1], showgrid=False)
    basis = f"{count(len(tests), 'test')} of {count(len(regions), 'region')} in {count(_n_rounds(tests), 'round')}"
    columns = ["test_id", "attempt", "round", "from_region", "to_region", "outcome"]
    return theme.finish(
        figure,
        name="rounds",
        title="Rounds as they happened",
        subtitle=f"One bar per region and test. {said}.",
        alt=f"Timeline of {basis}. {said}.",
        caption=f"When each region took part in a test: {basis}. {said}.",
        table=tests[columns].assign(start_s=start_s, length_s=length_s),
        note=note,
    )


ENDS = ("from_region", "to_region")


def overlapping(tests: pd.DataFrame) -> int:
    """How many times a test of a region starts before its earlier one has ended."""
    ended = tests.dropna(subset="ended_at_utc")
    both = pd.concat([ended.assign(region=ended[end]) for end in ENDS]).sort_values(
        ["region", "started_at_utc"]
    )
    before = both.groupby("region").ended_at_utc.cummax().groupby(both.region).shift()
    return int((both.started_at_utc < before).sum())


def _label(row) -> str:
    return f"{theme.plain(row.from_region)} to {theme.plain(row.to_region)}"


def _n_rounds(tests: pd.DataFrame) -> int:
    return int(np.unique(tests["round"]).size)
