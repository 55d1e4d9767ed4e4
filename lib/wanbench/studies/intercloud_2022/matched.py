"""Two clouds compared in the cities where both are: distance is the same by design, not by a model."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...stats.regions import dyadic
from ...stats.regions.line import REFERENCES
from ...stats.regions.unordered_pairs import FEWEST_FOR_INTERVAL, unordered
from ...stats.result import PAIRS_INDEPENDENT, Estimate, Interval, Result, html

METHOD = (
    "mean over pairs of cities of (both pairs between the clouds) less (the pair within each cloud); interval from the "
    f"dyadic jackknife over cities ({REFERENCES})"
)
ASSUMPTION = (
    "What sets the clouds apart in these cities also does elsewhere; hosts of one city stand at one place"
)


@dataclass(frozen=True, repr=False)
class Matched(Result):
    """
    Attributes
    ----------
    difference : Estimate
        Between clouds less within one: ms, or for throughput a ratio (between over within).
    cities : DataFrame
        The regions taken as one place: one, other, apart_km.
    pairs : DataFrame
        Per pair of cities: city_a, city_b, between, within, difference (of logarithms for throughput).
    """

    difference: Estimate
    cities: pd.DataFrame
    pairs: pd.DataFrame

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.difference,)

    DRAWN_BY = "survey_figures.matched_cities"

    def __str__(self) -> str:
        return str(self.difference)

    def _repr_html_(self) -> str:
        return html(self.estimates, "Cities where both clouds are")


def matched(
    pairs: pd.DataFrame,
    *,
    column: str = "rtt_ms",
    clouds: tuple[str, str] = ("aws", "gcp"),
    within_km: float = 50.0,
    level: float = 0.95,
) -> Matched:
    """
    Compare pairs between two clouds with pairs within them, over the same pairs of cities.

    A city is a region of either cloud no more than `within_km` apart, nearest first, each region in one city only. A
    pair of cities counts where all four of its pairs have a value: within either cloud, and across both ways.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`; pairs of the cities themselves give their distances.
    column : str
        "rtt_ms", or "throughput_bps", which is compared as a ratio.

    Raises
    ------
    ParameterError
        With fewer than two cities, or no pair of cities with all four values.
    """
    check_level(level)
    ratio = column == "throughput_bps"
    sample = unordered(pairs, column, combine="geometric mean" if ratio else "median")
    cities = _cities(pairs, clouds, within_km)
    value = {(row.region_a, row.region_b): row.value for row in sample.frame.itertuples()}
    rows = []
    for i in range(len(cities)):
        for j in range(i + 1, len(cities)):
            (a1, g1), (a2, g2) = cities[i][:2], cities[j][:2]
            four = [value.get(tuple(sorted(ends)), nan) for ends in ((a1, g2), (g1, a2), (a1, a2), (g1, g2))]
            if np.isfinite(four).all():
                four = np.log(four) if ratio else np.array(four)
                between, within = four[:2].mean(), four[2:].mean()
                rows.append((i, j, between, within, between - within))
    if not rows:
        raise ParameterError(
            f"no pair of cities of both {' and '.join(clouds)} within {within_km:g} km has all four of {column}; "
            f"there are {len(cities)} such cities"
        )
    first, second = np.array([row[:2] for row in rows]).T
    differences = np.array([row[4] for row in rows])
    used = sorted({*first, *second})
    first, second = np.searchsorted(used, first), np.searchsorted(used, second)
    estimate, half = float(differences.mean()), nan
    naive = stats.t.ppf((1 + level) / 2, max(len(rows) - 1, 1)) * differences.std(ddof=1) / np.sqrt(len(rows))
    warnings = sample.warnings()[: len(sample.left_out) > 0]
    if len(used) < FEWEST_FOR_INTERVAL:
        warnings += (f"no interval from {len(used)} cities; it takes {FEWEST_FOR_INTERVAL}",)
    else:
        half = dyadic.ratio(differences, np.ones(len(rows)), first, second, len(used), level)[1]
    change = np.exp if ratio else float
    names = [f"{cities[k][0]} / {cities[k][1]}" for k in range(len(cities))]
    back = np.exp if ratio else (lambda each: each)
    return Matched(
        Estimate(
            quantity=f"between clouds {'over' if ratio else 'less'} within one, same cities ({column})",
            claim=f"Over the same pairs of cities, {'throughput' if ratio else 'round trips'} between clouds "
            + ("is {} times that within one" if ratio else "take {} longer than within one"),
            estimate=float(change(estimate)),
            low=float(change(estimate - half)),
            high=float(change(estimate + half)),
            unit="" if ratio else "ms",
            n=len(rows),
            n_regions=2 * len(used),
            method=METHOD,
            assumption=ASSUMPTION,
            level=level,
            naive=Interval(
                PAIRS_INDEPENDENT, float(change(estimate - naive)), float(change(estimate + naive))
            ),
            warnings=warnings,
        ),
        pd.DataFrame(cities, columns=["one", "other", "apart_km"]),
        pd.DataFrame(
            {
                "city_a": [names[row[0]] for row in rows],
                "city_b": [names[row[1]] for row in rows],
                "between": [float(back(row[2])) for row in rows],
                "within": [float(back(row[3])) for row in rows],
                "difference": differences,
            }
        ),
    )


def _cities(pairs: pd.DataFrame, clouds, within_km: float) -> list[tuple[str, str, float]]:
    """One-to-one matches of the regions of two clouds, nearest first."""
    one, other = clouds
    columns = ["one", "other", "apart_km"]
    near = pairs[pairs.distance_km <= within_km][["from_region", "to_region", "distance_km"]]
    both = [near.set_axis(columns, axis=1), near.set_axis(["other", "one", "apart_km"], axis=1)[columns]]
    found = pd.concat(both)
    found = found[found.one.str.startswith(f"{one}:") & found.other.str.startswith(f"{other}:")]
    cities, taken = [], set()
    for row in found.drop_duplicates(["one", "other"]).sort_values(["apart_km", "one", "other"]).itertuples():
        if row.one not in taken and row.other not in taken:
            cities.append((row.one, row.other, float(row.apart_km)))
            taken |= {row.one, row.other}
    return cities
