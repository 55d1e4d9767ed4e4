"""Test whether throughput at equal distance depends on the clouds of a pair, by analysis of covariance over pairs of
regions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, isnan

import numpy as np
import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.distance.straight_lines import THOUSAND_KM
from wanbench.methods.regions.line import ASSUMPTION, DYADIC, REFERENCES, SCALED, SCALED_REFERENCES
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, directed, require_regions, unordered
from wanbench.methods.regions.places import Units, units
from wanbench.methods.result import Estimate, Fields, Result
from wanbench.pages.intercloud_2022.regression import Coefficients, determined, least_squares
from wanbench.regions import cloud_title

METHOD = f"least squares over unordered pairs; interval from the {SCALED} ({SCALED_REFERENCES})"
OF_DIRECTIONS = f"least squares over ordered pairs; interval from the {DYADIC} ({REFERENCES})"
FEWEST = 4  # With fewer regions, the offsets of two clouds, the slope and the cost of crossing are not determined
LARGEST_LOG10 = 308.0  # The largest power of 10 that a float holds
# With fewer places of a cloud, its part of the variance comes from the working model rather than from the data
FEWEST_OF_A_CLOUD = 5
EQUAL = "Distance has the same effect in all groups. Regions of one cloud differ only by chance. " + ASSUMPTION


def clouds_of(names: list[str]) -> np.ndarray:
    """Return the cloud of each region, such as "aws" of "aws:eu-west-1"."""
    return np.array([name.partition(":")[0] for name in names])


def cross_cloud(names: list[str], first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return 1 for each pair of regions of different clouds, else 0; `first` and `second` are indices of `names`."""
    clouds = clouds_of(names)
    return (clouds[first] != clouds[second]).astype(float)


BETWEEN, WITHIN = "between clouds", "within one cloud"
NO_DIFFERENCE = "At equal distance, throughput {one} is {{}} that {other}: no difference is shown"
FASTER = "At equal distance, transfers {one} reach {{}} the throughput of those {other}"
SLOWER = "At equal distance, transfers {other} reach {{}} the throughput of those {one}"


def _ratio(log: float) -> float:
    """Convert a difference of log10(bit/s) to a ratio; infinite beyond the range of a float."""
    return inf if log > LARGEST_LOG10 else 10**log


@dataclass(frozen=True, repr=False)
class GroupContrast(Result):
    """
    The ratio of the throughputs of two groups of pairs at equal distance.

    one, other: Labels of the groups.
    estimate: Ratio of the throughput of `one` to that of `other`.
    """

    one: str
    other: str
    estimate: Estimate

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.reported,)

    @property
    def sentence(self) -> str:
        return self.reported.sentence

    @property
    def reported(self) -> Estimate:
        """The estimate or, if `one` is significantly slower, its inverse, so that the stated ratio is above 1."""
        estimate, labels = self.estimate, {"one": self.one, "other": self.other}
        if estimate.low <= 1 <= estimate.high:
            return replace(estimate, claim=NO_DIFFERENCE.format(**labels))
        if estimate.estimate >= 1:
            return replace(estimate, claim=FASTER.format(**labels))
        about = {"quantity": estimate.quantity, "claim": SLOWER.format(**labels), "unit": estimate.unit}
        return estimate.transformed(lambda value: 1 / value if value > 0 else inf, **about)


@dataclass(frozen=True, repr=False)
class CloudComparison(Result):
    """
    Ratios of throughputs at equal distance, by the clouds of a pair's regions, from regressions of log throughput.

    difference: Pairs between two clouds over pairs within one. Each cloud's regions have a level of their own in the
        regression, so that a slow cloud does not count as a cost of crossing.
    directions: For each two clouds, from one to the other over the opposite direction, from ordered pairs.
    """

    difference: GroupContrast
    directions: tuple[GroupContrast, ...]

    TITLE = "Throughput by the clouds of a pair, at equal distance"

    @property
    def contrasts(self) -> tuple[GroupContrast, ...]:
        return (self.difference, *self.directions)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(contrast.estimate for contrast in self.contrasts)

    @property
    def sentence(self) -> str:
        return " ".join(contrast.sentence for contrast in self.contrasts)


def compare_clouds(pairs: pd.DataFrame) -> CloudComparison:
    """
    Compare the throughput of pairs by their clouds, at equal distance.

    Log throughput is regressed on distance, on whether a pair crosses clouds, and on an offset for the regions of each
    cloud, so that a slow cloud does not count as a cost of crossing. Intervals come from the jackknife over places
    (regions, or clusters of near ones), scaled by a model in which each place has random effects on the offset, on the
    slope and on the cost of crossing. For directions, the variance is the jackknife over places minus the jackknife
    over pairs.

    pairs: Table `pairs`.

    Raises ParameterError: there are fewer than 4 regions, or not both kinds of pairs.
    """
    sample = unordered(pairs, "throughput_bps", combine="geometric mean")
    require_regions(sample, FEWEST, "a comparison of clouds")
    value = np.log10(sample.frame.value.to_numpy())
    names, cells = sample.regions, (sample.first, sample.second)
    grouped = units(sample)
    crosses = cross_cloud(names, *cells)
    if len(set(crosses)) < 2:
        kind = WITHIN if crosses[0] else BETWEEN
        raise ParameterError(f"no pair {kind} has throughput_bps: there is nothing to compare")
    if np.ptp(sample.frame.distance_km) <= 0:
        raise ParameterError("a comparison of clouds needs pairs of different distance; all have the same")
    far = sample.frame.distance_km.to_numpy() / THOUSAND_KM
    notes = (*sample.warnings(), *grouped.warnings())
    levels, unclear = cloud_levels(names, cells, [crosses, far], grouped)
    if unclear:
        listed = ", ".join(map(cloud_title, unclear))
        notes += (
            f"too few pairs to separate the level of {listed} from the cost of crossing: it counts "
            "as part of that cost",
        )
    fit = fit_pairs(value, grouped, [crosses, far, *levels])
    estimate = fit.combination(np.eye(len(fit.values))[1]).estimate(
        _ratio,
        quantity=f"{BETWEEN} over {WITHIN}, at equal distance",
        claim=f"{BETWEEN.capitalize()} over {WITHIN}, at equal distance: {{}}",
        unit="times",
        **sample.counted(grouped.n),
        method=f"{METHOD}; one slope for both, and a constant for the regions of each cloud",
        assumption=EQUAL,
        warnings=notes,
    )
    return CloudComparison(GroupContrast(BETWEEN, WITHIN, estimate), _directions(pairs))


def _design(columns: list[np.ndarray]) -> np.ndarray:
    return np.column_stack([np.ones(len(columns[0])), *columns])


def fit_pairs(value: np.ndarray, grouped: Units, columns: list[np.ndarray]) -> Coefficients:
    """
    Regress `value` on `columns`, of which the first is whether a pair crosses clouds and the second is distance.

    The model that scales the intervals has a random effect of each unit (place) on these two coefficients.
    """
    design = _design(columns)
    return least_squares(design, value, grouped, grouped.both, shifted=(2, 1))


def cloud_levels(
    names: list[str], cells: tuple[np.ndarray, np.ndarray], columns: list[np.ndarray], grouped: Units
) -> tuple[list[np.ndarray], list[str]]:
    """
    Return the regression's columns for the offsets of clouds, and the clouds whose offset cannot be determined.

    A column counts how many of a pair's two regions belong to the cloud, centred over the pairs. The first cloud is the
    reference and has no column. An offset cannot be determined if its column is linearly dependent on the columns
    before it, over all pairs or without the pairs of some unit (place).

    columns: The columns already in the regression.
    """
    clouds = clouds_of(names)
    kept, unclear = [], []
    for cloud in sorted(set(clouds))[1:]:
        own = (clouds == cloud).astype(float)
        one = own[cells[0]] + own[cells[1]]
        one = one - one.mean()
        design = _design([*columns, *kept, one])
        if determined(design / np.sqrt((design**2).mean(axis=0)), grouped):
            kept.append(one)
        else:
            unclear.append(cloud)
    return kept, unclear


def _directions(pairs: pd.DataFrame) -> tuple[GroupContrast, ...]:
    """Compare the two directions between each two clouds, by a regression over ordered pairs with a common slope."""
    sample = directed(pairs, "throughput_bps")
    value = np.log10(sample.frame.value.to_numpy())
    way = sample.frame.from_cloud + ">" + sample.frame.to_cloud
    ways = sorted(way.unique())
    grouped = units(sample)
    notes = sample.warnings() + grouped.warnings()
    if lone := 2 * sample.n_pairs - len(value):
        notes += (f"{count(lone, 'pair')} with one direction only",)
    far = sample.frame.distance_km.to_numpy() / THOUSAND_KM
    design = np.column_stack([*((way == name).astype(float) for name in ways), far])
    # In the working model every unit has its own effect on the offset, on the slope, and on pairs between clouds.
    shifted = [np.eye(design.shape[1])[-1]]
    crosses = np.array([*(len({*name.split(">")}) > 1 for name in ways), False], dtype=float)
    if 0 < crosses.sum() < len(ways):
        shifted.append(crosses)
    fit = least_squares(design, value, grouped, sample.both, shifted=shifted)
    clouds, contrasts = clouds_of(sample.regions), []
    for clouds_here in combinations(sorted({*clouds}), 2):
        ends = ">".join(clouds_here), ">".join(clouds_here[::-1])
        if {*ends} <= {*ways}:
            places = min(len({*grouped.of_region[clouds == cloud]}) for cloud in clouds_here)
            counted = {"n": len(value), "n_regions": sample.n_regions, "n_places": grouped.n}
            contrasts.append(_direction(ends, places, fit, ways, counted, notes))
    return tuple(contrasts)


def _direction(
    ends: tuple[str, str], places: int, fit: Coefficients, ways: list[str], size: Fields, notes: tuple[str, ...]
) -> GroupContrast:
    """
    Estimate the ratio of the throughput in the first of two directions to that in the second.

    The t quantile has `places` - 1 degrees of freedom, where `places` is the number of places of the cloud with fewer
    places: the fewest that Welch's formula can give.
    """
    weights = np.array([(name == ends[0]) - float(name == ends[1]) for name in ways])
    freedom = max(places - 1, 1)
    part = fit.combination(np.append(weights, 0.0), freedom=freedom)
    if isnan(part.interval.low) and fit.n_regions >= FEWEST_FOR_INTERVAL:
        notes = (*notes, "no interval: the contrast is not determined without one of the places")
    if places < FEWEST_OF_A_CLOUD:
        notes = (*notes, f"one of the clouds has only {count(places, 'place')} here")
    one, other = (f"from {cloud_title(a)} to {cloud_title(b)}" for a, b in (way.split(">") for way in ends))
    quantity = f"{one} over {other}, at equal distance"
    estimate = part.estimate(
        _ratio,
        quantity=quantity,
        claim=f"{quantity[0].upper()}{quantity[1:]}: {{}}",
        unit="times",
        **size,
        method=f"{OF_DIRECTIONS}, t with {number(freedom, 1)} degrees of freedom; common slope",
        assumption=EQUAL,
        warnings=notes,
    )
    return GroupContrast(one, other, estimate)
