"""Compare AWS and Google Cloud over pairs of cities where both are present, so that distances are equal by design."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import nan

import numpy as np
import pandas as pd

from wanbench.checks import check_choice
from wanbench.errors import ParameterError
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.line import REFERENCES
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, unordered
from wanbench.methods.result import LEVEL, PAIRS_INDEPENDENT, Estimate, Interval, Result, t_quantile

METHOD = (
    "mean over pairs of cities: mean of the two pairs between the clouds minus mean of the pairs within each cloud; "
    f"interval from the dyadic jackknife over cities ({REFERENCES})"
)
ASSUMPTION = "Other cities have the same difference; both clouds are at the same place in a city"
WITHIN_KM = 50.0  # Regions of two clouds at most this far apart are one city


@dataclass(frozen=True, repr=False)
class MatchedCities(Result):
    """
    Pairs between AWS and Google Cloud compared with pairs within each of them, over the same pairs of cities.

    difference: The result. For RTT, the mean between clouds minus the mean within a cloud, in ms; for throughput, the
        geometric mean between clouds over that within a cloud.
    """

    TITLE = "Cities with regions of both clouds"

    difference: Estimate


def matched_cities(pairs: pd.DataFrame, *, column: str = "rtt_ms") -> MatchedCities:
    """
    Compare pairs between AWS and Google Cloud with pairs within either, over the same pairs of cities.

    A city is a region of each cloud, at most 50 km apart; nearest regions are matched first. A pair of cities counts if
    all four pairs of regions between them have a value in `column`: "rtt_ms", compared as a difference, or
    "throughput_bps", compared as a ratio.

    Raises ParameterError: no pair of cities has all four values.
    """
    check_choice("column", column, ("rtt_ms", "throughput_bps"))
    as_ratio = column == "throughput_bps"
    sample = unordered(pairs, column, combine="geometric mean" if as_ratio else "median")
    cities = _cities(pairs)
    value = {(row.region_a, row.region_b): row.value for row in sample.frame.itertuples()}
    rows = []
    for (i, (a1, g1)), (j, (a2, g2)) in combinations(enumerate(cities), 2):
        ends = ((a1, g2), (g1, a2), (a1, a2), (g1, g2))
        four = np.array([value.get((min(pair), max(pair)), nan) for pair in ends])
        if np.isfinite(four).all():
            four = np.log(four) if as_ratio else four
            rows.append((i, j, four[:2].mean(), four[2:].mean()))
    if not rows:
        raise ParameterError(
            f"no pair of cities of both aws and gcp within {WITHIN_KM:g} km has all four of {column}; "
            f"there are {len(cities)} such cities"
        )
    first, second, between, within = (np.array(column) for column in zip(*rows, strict=True))
    apart = between - within
    mean, n = float(apart.mean()), len(rows)
    used, ends = np.unique([first, second], return_inverse=True)
    ends = ends.reshape(2, -1)
    naive = t_quantile(LEVEL, max(n - 1, 1)) * np.sqrt(apart.var(ddof=1) / n) if n > 1 else nan
    warnings, half = sample.warnings()[: len(sample.left_out) > 0], nan
    if len(used) < FEWEST_FOR_INTERVAL:
        warnings += (f"no interval from {len(used)} cities; it needs {FEWEST_FOR_INTERVAL}",)
    else:
        half = dyadic.ratio(apart, np.ones(n), ends[0], ends[1], len(used), LEVEL)[1]
    back = np.exp if as_ratio else np.asarray  # ratios are analysed as differences of logarithms
    difference = Estimate(
        f"between clouds {'over' if as_ratio else 'minus'} within one cloud, same cities",
        "Over the same pairs of cities, throughput between clouds is {} times that within one cloud"
        if as_ratio
        else "Over the same pairs of cities, round trips between clouds take {} longer than within one cloud",
        *(float(back(value)) for value in (mean, mean - half, mean + half)),
        unit="" if as_ratio else "ms",
        n=n,
        n_regions=2 * len(used),
        method=METHOD,
        assumption=ASSUMPTION,
        naive=Interval(PAIRS_INDEPENDENT, float(back(mean - naive)), float(back(mean + naive))),
        warnings=warnings,
    )
    return MatchedCities(difference)


def _cities(pairs: pd.DataFrame) -> list[tuple[str, str]]:
    """Match regions of AWS and Google Cloud one to one, nearest first; return (AWS, Google) of each city."""
    near = pairs[pairs.distance_km <= WITHIN_KM][["from_region", "to_region", "distance_km"]]
    columns = ["one", "other", "apart_km"]
    back = near[["to_region", "from_region", "distance_km"]]
    matches = pd.concat([near.set_axis(columns, axis=1), back.set_axis(columns, axis=1)])
    in_clouds = matches.one.str.startswith("aws:") & matches.other.str.startswith("gcp:")
    matches = matches[in_clouds].drop_duplicates(["one", "other"])
    cities, taken = [], set()
    for row in matches.sort_values(["apart_km", "one", "other"]).itertuples():
        if not {row.one, row.other} & taken:
            cities.append((row.one, row.other))
            taken |= {row.one, row.other}
    return cities
