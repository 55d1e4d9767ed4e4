"""Whether the nearest region of another cloud is the one that data reach fastest."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, percent
from ...stats.regions import dyadic
from ...stats.regions.check_pairs import check_pairs
from ...stats.regions.unordered_pairs import FEWEST_FOR_INTERVAL
from ...stats.result import Estimate, Result, html

NEARLY = 0.9
COLUMNS = ("from_region", "to_region", "from_cloud", "to_cloud", "distance_km", "throughput_bps")
METHOD = "percentile interval of a bootstrap over source regions"
ASSUMPTION = (
    "The target regions are taken as given: source regions share them, so the interval says nothing of other "
    "targets"
)


@dataclass(frozen=True, repr=False)
class Nearest(Result):
    """
    Attributes
    ----------
    share : Estimate
        The share of sources to whose nearest target throughput is at least 90 % of the best.
    relative : Estimate
        Throughput to the nearest target over that to the best one: the median over sources.
    sources : DataFrame
        Per source region and target cloud: from_region, to_cloud, n_targets, nearest, nearest_km, best,
        best_km, relative.
    """

    share: Estimate
    relative: Estimate
    sources: pd.DataFrame

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.share, self.relative)

    DRAWN_BY = "survey_figures.nearest_targets"

    def __str__(self) -> str:
        return f"{self.share} {self.relative}"

    def _repr_html_(self) -> str:
        return html(self.estimates, "The nearest region of the other cloud")


def nearest(
    pairs: pd.DataFrame, *, least_targets: int = 3, level: float = 0.95, resamples: int = 4_000, seed: int = 0
) -> Nearest:
    """
    For each source region and each other cloud: throughput to its nearest region against the best there.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`, with `distance_km` and `throughput_bps`; pairs without either have no part, and are counted.
    least_targets : int
        A source with fewer targets in that cloud has no part, and is counted.
    """
    check_level(level)
    pairs = check_pairs(pairs, *COLUMNS)
    between = pairs[pairs.from_cloud != pairs.to_cloud]
    rows = between[(between.throughput_bps > 0) & between.distance_km.notna()]
    enough = rows.groupby(["from_region", "to_cloud"]).to_region.transform("size") >= least_targets
    used = rows[enough]
    if used.empty:
        raise ParameterError(f"no region has throughput to {least_targets} regions of another cloud")
    groups = used.groupby(["from_region", "to_cloud"])
    sources = pd.DataFrame([_source(region, cloud, group) for (region, cloud), group in groups])
    names, index = np.unique(sources.from_region.to_numpy(dtype=str), return_inverse=True)
    relative, good = sources.relative.to_numpy(), (sources.relative >= NEARLY).to_numpy(dtype=float)
    ends, warnings = np.full((2, 2), nan), _left_out(len(between) - len(rows), rows[~enough])
    if len(names) < FEWEST_FOR_INTERVAL:
        warnings += (f"no interval from {len(names)} source regions; it takes {FEWEST_FOR_INTERVAL}",)
    else:
        rng = np.random.default_rng(seed)
        weights = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), resamples)[:, index]
        drawn = np.column_stack([weights @ good / weights.sum(axis=1), dyadic.medians(relative, weights)])
        ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0).T
    common = {
        "n": len({frozenset(ends) for ends in zip(used.from_region, used.to_region, strict=True)}),
        "n_regions": len({*used.from_region, *used.to_region}),
        "assumption": ASSUMPTION,
        "level": level,
        "warnings": warnings,
    }
    return Nearest(
        share=Estimate(
            quantity="sources whose nearest target is about the best",
            claim=f"For {{}} of sources the nearest tested region of the other cloud has at least {percent(NEARLY)} of "
            "the best throughput there",
            estimate=float(good.mean()),
            low=ends[0, 0],
            high=ends[0, 1],
            unit="fraction",
            method=f"share of {len(sources)} sources; {METHOD}",
            **common,
        ),
        relative=Estimate(
            quantity="throughput to the nearest target over the best",
            claim="Throughput to the nearest region is {} of the best in the median",
            estimate=float(np.median(relative)),
            low=ends[1, 0],
            high=ends[1, 1],
            unit="fraction",
            method=f"median over {len(sources)} sources; {METHOD}",
            **common,
        ),
        sources=sources,
    )


def _left_out(n_without: int, few: pd.DataFrame) -> tuple[str, ...]:
    said = []
    if n_without:
        said.append(f"{count(n_without, 'pair')} between clouds without throughput or distance left out")
    if len(few):
        n_sources = few.groupby(["from_region", "to_cloud"]).ngroups
        said.append(f"{count(n_sources, 'source')} with too few targets in a cloud left out")
    return tuple(said)


def _source(region: str, cloud: str, group: pd.DataFrame) -> dict:
    near, best = group.loc[group.distance_km.idxmin()], group.loc[group.throughput_bps.idxmax()]
    return {
        "from_region": region,
        "to_cloud": cloud,
        "n_targets": len(group),
        "nearest": near.to_region,
        "nearest_km": near.distance_km,
        "best": best.to_region,
        "best_km": best.distance_km,
        "relative": near.throughput_bps / best.throughput_bps,
    }
