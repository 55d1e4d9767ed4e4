"""Compare throughput to the nearest region of another cloud with the best throughput to that cloud."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import count, percent
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, check_pairs
from wanbench.methods.result import Estimate, Result, tails

# Share of the best throughput from which a target counts as about the best; repeated tests typically differ by 2 %
NEARLY = 0.9
# Minimum number of tested targets in a cloud: among one or two, the nearest is often the best by chance
MIN_TARGETS = 3
COLUMNS = ("from_region", "to_region", "from_cloud", "to_cloud", "distance_km", "throughput_bps")
METHOD = "percentile interval of a bootstrap over source regions"
ASSUMPTION = "The target regions are fixed: all sources share them, so the interval says nothing about other targets"


@dataclass(frozen=True, repr=False)
class NearestRegion(Result):
    """
    Throughput to the nearest region of another cloud, compared with the best throughput to that cloud.

    share: The share of sources (a region and another cloud) whose throughput to the cloud's nearest region is at least
        90 % of the best.
    relative: The median over sources of throughput to the nearest region over the best throughput.
    """

    TITLE = "The nearest region of the other cloud"

    share: Estimate
    relative: Estimate

    @property
    def sentence(self) -> str:
        return f"{self.share.sentence} {self.relative.sentence}"


def nearest_region(pairs: pd.DataFrame, *, resamples: int = 4_000, seed: int = 0) -> NearestRegion:
    """
    Compare, for each source (a region and another cloud), throughput to the cloud's nearest region with the best one.

    Pairs without distance or throughput, and sources with fewer than 3 target regions, are left out and counted.
    """
    pairs = check_pairs(pairs, *COLUMNS)
    between = pairs[pairs.from_cloud != pairs.to_cloud]
    rows = between[(between.throughput_bps > 0) & between.distance_km.notna()]
    groups = rows.groupby(["from_region", "to_cloud"])
    used = rows[groups.to_region.transform("size") >= MIN_TARGETS]
    if used.empty:
        raise ParameterError(f"no region has throughput to {MIN_TARGETS} regions of another cloud")
    sources = used.groupby(["from_region", "to_cloud"])
    nearest = used.loc[sources.distance_km.idxmin()]
    regions, index = np.unique(nearest.from_region.to_numpy(dtype=str), return_inverse=True)
    relative = nearest.throughput_bps.to_numpy() / sources.throughput_bps.max().to_numpy()
    good = (relative >= NEARLY).astype(float)
    warnings = ()
    if n_without := len(between) - len(rows):
        warnings += (f"{count(n_without, 'pair')} between clouds without throughput or distance left out",)
    if n_few := groups.ngroups - len(sources):
        warnings += (f"{count(n_few, 'source')} with too few targets in a cloud left out",)
    ends = np.full((2, 2), nan)
    if len(regions) < FEWEST_FOR_INTERVAL:
        warnings += (f"no interval from {len(regions)} source regions; it needs {FEWEST_FOR_INTERVAL}",)
    else:
        weights = dyadic.region_weights(len(regions), resamples, seed)[:, index]
        drawn = np.column_stack([weights @ good / weights.sum(axis=1), dyadic.medians(relative, weights)])
        ends = np.quantile(drawn, tails(), axis=0)
    common = {
        "unit": "fraction",
        "n": len({frozenset(ends) for ends in zip(used.from_region, used.to_region, strict=True)}),
        "n_regions": len({*used.from_region, *used.to_region}),
        "assumption": ASSUMPTION,
        "warnings": warnings,
    }
    return NearestRegion(
        share=Estimate(
            "sources whose nearest target is about the best",
            f"For {{}} of the sending regions, the nearest tested region of the other cloud has at least "
            f"{percent(NEARLY)} of the best throughput to that cloud",
            *(float(good.mean()), *ends[:, 0]),
            method=f"share of {len(sources)} sources; {METHOD}",
            **common,
        ),
        relative=Estimate(
            "throughput to the nearest target over the best",
            "For the median source, throughput to the nearest region is {} of the best",
            *(float(np.median(relative)), *ends[:, 1]),
            method=f"median over {len(sources)} sources; {METHOD}",
            **common,
        ),
    )
