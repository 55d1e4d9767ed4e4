"""Differences between groups of pairs at equal distance: the contrast, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, isnan

import numpy as np

from wanbench.formatting import count, number
from wanbench.methods.result import Estimate, Result

from . import permutation
from .line import ASSUMPTION, DYADIC, REFERENCES, SCALED, SCALED_REFERENCES
from .mantel import p_estimate
from .pairs import FEWEST_FOR_INTERVAL
from .regression import Coefficients

METHOD = f"least squares over unordered pairs; interval from the {SCALED} ({SCALED_REFERENCES})"
OF_DIRECTIONS = f"least squares over ordered pairs; interval from the {DYADIC} ({REFERENCES})"
PERMUTED = (
    "MRQAP by double semi-partialling (Dekker, Krackhardt & Snijders 2007): (k + 1) / (B + 1) over B random "
    "relabellings of the residuals of this covariate on the others, by its t statistic; the interval is that of the "
    "Monte Carlo error alone (Clopper & Pearson 1934)"
)
CLOUDS = {"aws": "AWS", "azure": "Azure", "gcp": "Google Cloud", "ibm": "IBM"}
LARGEST_LOG10 = 308.0  # The largest power of 10 that a float holds
# With fewer places of a cloud, its part of the variance comes from the working model rather than from the data
FEWEST_OF_A_CLOUD = 5
BY_CHANCE = "Regions of one cloud differ only by chance. " + ASSUMPTION
EQUAL = "Distance has the same effect in all groups. " + BY_CHANCE


def cross_cloud(names: list[str]) -> np.ndarray:
    """1 for two regions of different clouds, else 0: (regions, regions)."""
    clouds = np.array([name.partition(":")[0] for name in names])
    return (clouds[:, None] != clouds).astype(float)


@dataclass(frozen=True)
class Scale:
    """The scale of differences: milliseconds, or log10(bit/s), whose differences are shown as ratios."""

    ratio: bool

    def estimate(self, value: float) -> float:
        if not self.ratio:
            return value
        return inf if value > LARGEST_LOG10 else 10**value

    def opposite(self, value: float) -> float:
        """Return the same difference seen from the other group."""
        if not self.ratio:
            return -value
        return 1 / value if value > 0 else inf

    @property
    def unit(self) -> str:
        return "times" if self.ratio else "ms"

    @property
    def nothing(self) -> float:
        """The value that means no difference."""
        return 1.0 if self.ratio else 0.0

    def no_difference(self, one: str, other: str) -> str:
        """Return the sentence where the interval holds no difference."""
        if self.ratio:
            return f"At equal distance, throughput {one} is {{}} that {other}: no difference is shown"
        return f"At equal distance, RTT {one} less that {other} is {{}}: no difference is shown"

    def claim(self, one: str, other: str, greater: bool) -> str:
        """Return the sentence for the larger group; the difference is positive, or a ratio above 1."""
        if not self.ratio:
            word = "slower" if greater else "faster"
            return f"At equal distance, round trips {one} are {{}} {word} than {other}"
        if greater:
            return f"At equal distance, transfers {one} are faster, {{}} the throughput of those {other}"
        return f"At equal distance, transfers {one} are slower: those {other} reach {{}} their throughput"


@dataclass(frozen=True, repr=False)
class GroupContrast(Result):
    """
    One group of pairs against another at equal distance.

    `estimate` is `one` less `other` in ms, or `one` over `other` in times; `p` its MRQAP p-value.
    """

    one: str
    other: str
    estimate: Estimate
    p: Estimate
    scale: Scale

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.reported, self.p)

    @property
    def sentence(self) -> str:
        return f"{self.reported.sentence} MRQAP p = {self.p.formatted}."

    @property
    def reported(self) -> Estimate:
        """The estimate for a sentence: with a word for the direction, and then never negative or below 1."""
        estimate, nothing = self.estimate, self.scale.nothing
        if not isnan(estimate.low) and estimate.low <= nothing <= estimate.high:
            return replace(estimate, claim=self.scale.no_difference(self.one, self.other))
        greater = estimate.estimate >= nothing
        claim = self.scale.claim(self.one, self.other, greater)
        if not greater:
            estimate = estimate.transformed(
                self.scale.opposite, quantity=estimate.quantity, claim=claim, unit=estimate.unit
            )
        return replace(estimate, claim=claim)

    def row(self) -> dict:
        """Return the contrast as a table row: that of its estimate, with its p-value."""
        ends = {"p": self.p.estimate, "p_low": self.p.low, "p_high": self.p.high}
        return {"one": self.one, "other": self.other} | self.estimate.row() | ends


@dataclass(frozen=True)
class Groups:
    """
    Regression of pairs on distance and on membership in groups, for contrasts.

    `members` maps each group to a (regions, regions) array of 0 and 1; `y` and `distance` (in 1,000 km) are
    (regions, regions) arrays; `cells` are the pairs in use; `fit` holds the coefficients of the groups in their order,
    then that of distance; `of_region` is the place of each of `names`.
    """

    members: dict[str, np.ndarray]
    y: np.ndarray
    distance: np.ndarray
    cells: permutation.Cells
    fit: Coefficients
    names: list[str]
    of_region: np.ndarray

    def contrast(
        self,
        weights: dict[str, float],
        labels: tuple[str, str],
        scale: Scale,
        orders: np.ndarray,
        *,
        warnings: tuple[str, ...],
    ) -> GroupContrast:
        """
        Return the difference between weighted group levels (weights add to 0), with its p-value.

        For directions, the t quantile has n - 1 degrees of freedom, n being the places of the smallest cloud involved:
        the conservative end of Welch's range.
        """
        group_weights = np.array([weights.get(name, 0.0) for name in self.members])
        vector = np.append(group_weights, 0.0)
        smallest = self._smallest(weights)
        freedom = max(smallest - 1, 1) if any(">" in name for name in weights) else None
        part = self.fit.combination(vector, freedom=freedom)
        if isnan(part.interval.low) and self.fit.n_regions >= FEWEST_FOR_INTERVAL:
            warnings = (*warnings, "no interval: the contrast is not determined without one of the places")
        if smallest < FEWEST_OF_A_CLOUD:
            warnings = (*warnings, f"one of the clouds has only {count(smallest, 'place')} here")
        degrees = self.fit.freedom(vector) if freedom is None else freedom
        one, other = labels
        # Rotate the groups' columns such that one coefficient is the contrast. Their sum is the constant, which
        # `t_statistics` adds itself, so the other columns are orthogonal to both.
        stack = np.stack([*self.members.values()])
        covariate = np.tensordot(group_weights / (group_weights @ group_weights), stack, axes=1)
        rest = np.linalg.svd(np.stack([group_weights, np.ones_like(group_weights)]))[2][2:]
        others = [self.distance, *(np.tensordot(row, stack, axes=1) for row in rest)]
        p = mrqap_p(f"permutation p, {one} against {other}", self.y, covariate, others, self.cells, orders, warnings)
        quantity = f"{one} {'over' if scale.ratio else 'less'} {other}, at equal distance"
        method = METHOD if freedom is None else OF_DIRECTIONS
        estimate = part.estimate(
            scale.estimate,
            quantity=quantity,
            claim=f"{quantity[0].upper()}{quantity[1:]}: {{}}",
            unit=scale.unit,
            n=len(self.cells[0]),
            n_regions=len(self.names),
            n_places=self.fit.n_regions,
            method=f"{method}, t with {number(degrees, 1)} degrees of freedom; common slope",
            assumption=EQUAL,
            warnings=warnings,
        )
        return GroupContrast(one, other, estimate, p, scale)

    def _smallest(self, weights: dict[str, float]) -> int:
        """Compute the number of places of the smallest cloud involved."""
        involved = {cloud for name, weight in weights.items() if weight for cloud in ends(name)}
        clouds = np.array([name.partition(":")[0] for name in self.names])
        return min(len({*self.of_region[clouds == cloud]}) for cloud in involved)


def mrqap_p(quantity: str, y, covariate, others: list, cells, orders: np.ndarray, warnings) -> Estimate:
    """Compute the p-value of a covariate given the others (`permutation.t_statistics`)."""
    observed, drawn = permutation.t_statistics(y, covariate, others, cells, orders)
    claim = "relabelled, as strong a t statistic arises with probability {}"
    extreme, basis = permutation.as_extreme(drawn, observed), (len(cells[0]), len(y))
    return p_estimate(quantity, claim, extreme, len(orders), basis, warnings, PERMUTED)


def ends(group: str) -> tuple[str, str]:
    """Return the two clouds of a group's name: "aws-gcp" (unordered) or "aws>gcp" (ordered)."""
    one, _, other = group.partition(">" if ">" in group else "-")
    return one, other


def group_label(group: str) -> str:
    """
    Return the label of a group of pairs.

    >>> group_label("aws-aws"), group_label("aws-gcp"), group_label("gcp>aws")
    ('within AWS', 'between AWS and Google Cloud', 'from Google Cloud to AWS')
    """
    one, other = (CLOUDS.get(cloud, cloud) for cloud in ends(group))
    if one == other:
        return f"within {one}"
    return f"from {one} to {other}" if ">" in group else f"between {one} and {other}"


def pairwise(groups: Sequence[str]) -> list[tuple[dict[str, float], tuple[str, str]]]:
    """Return the contrast of every two groups: weights and labels."""
    return [({a: 1.0, b: -1.0}, (group_label(a), group_label(b))) for a, b in combinations(groups, 2)]


def crossings(groups: Sequence[str]) -> list[tuple[dict[str, float], tuple[str, str]]]:
    """
    Return the contrast of two clouds' common pairs with the mean of the pairs within either: the cost of crossing.

    Whatever the regions of a cloud have in common cancels, since each cloud has half the weight on either side.
    """
    contrasts = []
    for name in groups:
        one, other = ends(name)
        within = f"{one}-{one}", f"{other}-{other}"
        if one != other and set(within) <= set(groups):
            weights = {name: 1.0, within[0]: -0.5, within[1]: -0.5}
            contrasts.append((weights, (group_label(name), "within either (their mean)")))
    return contrasts
