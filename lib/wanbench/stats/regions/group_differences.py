"""Differences between groups of pairs at equal distance: what such a contrast is, and how it is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, isnan

import numpy as np

from ...formatting import count
from ..result import PAIRS_INDEPENDENT, Estimate, Interval, Result
from . import mrqap, qap
from .covariates import METHOD, OF_DIRECTIONS, PERMUTED
from .line import ASSUMPTION
from .permutation import p_estimate
from .regression import Coefficients

CLOUDS = {"aws": "AWS", "azure": "Azure", "gcp": "Google Cloud", "ibm": "IBM"}
LARGEST_LOG10 = 308.0
FEWEST_OF_A_CLOUD = 5
"""Regions of a cloud below which its part of the variance rests on the working model."""
EQUAL = (
    "Distance acts alike in the groups compared, and the regions of a cloud differ from each other by chance only. "
    + ASSUMPTION
)


@dataclass(frozen=True)
class Scale:
    """How differences are written: of milliseconds, or of log10(bit/s), which are ratios."""

    ratio: bool

    def estimate(self, value: float) -> float:
        if not self.ratio:
            return value
        return inf if value > LARGEST_LOG10 else 10**value

    @property
    def unit(self) -> str:
        return "times" if self.ratio else "ms"

    @property
    def nothing(self) -> float:
        """The value of no difference."""
        return 1.0 if self.ratio else 0.0

    def claim(self, one: str, other: str, greater: bool) -> str:
        """What is said of a positive difference, or a ratio above 1, of the greater group over the lesser."""
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
    def said(self) -> Estimate:
        """The same in plain words: turned round where it is negative or below 1, so that a word says which way."""
        value = self.estimate.estimate
        greater = value >= self.scale.nothing
        claim = self.scale.claim(self.one, self.other, greater)
        turned = self.estimate
        if not greater:
            turned = turned.transformed(
                (lambda each: 1 / each if each > 0 else float("inf"))
                if self.scale.ratio
                else (lambda each: -each),
                quantity=turned.quantity,
                claim=claim,
                unit=turned.unit,
            )
        if isnan(turned.low):
            return replace(turned, claim=claim)
        if turned.low <= self.scale.nothing <= turned.high:
            claim = f"{claim}, which may be chance"
        return replace(turned, claim=claim)

    def __str__(self) -> str:
        return f"{self.said} MRQAP p = {self.p.written}."

    def row(self) -> dict:
        """The contrast as a row of a table: that of its estimate, with its p-value."""
        ends = {"p": self.p.estimate, "p_low": self.p.low, "p_high": self.p.high}
        return {"one": self.one, "other": self.other} | self.estimate.row() | ends


@dataclass(frozen=True)
class Groups:
    """
    Regression of pairs on distance and on membership in groups, as contrasts need it.

    `members` maps each group to a (regions, regions) array of 0 and 1; `y` and `distance` (in 1,000 km) are
    (regions, regions) arrays; `cells` the pairs in use; `fit` the coefficients of the groups in their order, then
    that of distance; `of_region` the place of each of `names`.
    """

    members: dict[str, np.ndarray]
    y: np.ndarray
    distance: np.ndarray
    cells: qap.Cells
    fit: Coefficients
    names: list[str]
    of_region: np.ndarray

    def contrast(
        self,
        weights: dict[str, float],
        said: tuple[str, str],
        scale: Scale,
        orders: np.ndarray,
        *,
        level: float,
        several: int,
        warnings: tuple[str, ...],
    ) -> GroupContrast:
        """
        The weighted sum of the groups' heights (weights that add to 0), with its p-value.

        Of directions, the interval's t quantile has one degree of freedom less than the smallest of the clouds
        concerned has places: the safe end of Welch's range. Beside the interval stands the one with Bonferroni's
        correction for `several` contrasts.
        """
        c = np.array([weights.get(name, 0.0) for name in self.members])
        vector = np.append(c, 0.0)
        smallest = self._smallest(weights)
        freedom = max(smallest - 1, 1) if any(">" in name for name in weights) else None
        part = self.fit.combination(vector, level, freedom)
        others = ()
        if several > 1:
            ends = self.fit.combination(vector, 1 - (1 - level) / several, freedom).interval
            method = f"the same, with Bonferroni's correction for {several} contrasts"
            others = (Interval(method, scale.estimate(ends.low), scale.estimate(ends.high)),)
        if isnan(part.interval.low) and self.fit.n_regions >= 5:
            warnings = (*warnings, "no interval: it cannot be told without one of the places")
        if smallest < FEWEST_OF_A_CLOUD:
            warnings = (*warnings, f"one of the clouds has only {count(smallest, 'place')} here")
        degrees = self.fit.freedom(vector) if freedom is None else freedom
        observed, drawn = self._permuted(c, orders)
        basis = (len(self.cells[0]), len(self.names))
        p = p_estimate(
            f"permutation p, {said[0]} against {said[1]}",
            "relabelled, as strong a t statistic arises with probability {}",
            qap.as_extreme(drawn, observed),
            len(orders),
            basis,
            level,
            warnings,
            PERMUTED,
        )
        value = scale.estimate(part.value)
        join = "over" if scale.ratio else "less"
        estimate = Estimate(
            quantity=f"{said[0]} {join} {said[1]}, at equal distance",
            claim=f"{said[0][0].upper()}{said[0][1:]} {join} {said[1]}, at equal distance: {{}}",
            estimate=value,
            low=scale.estimate(part.interval.low),
            high=scale.estimate(part.interval.high),
            unit=scale.unit,
            n=basis[0],
            n_regions=basis[1],
            n_places=self.fit.n_regions,
            method=f"{METHOD if freedom is None else OF_DIRECTIONS}, t with {degrees:.1f} degrees of freedom; "
            "common slope",
            assumption=EQUAL,
            level=level,
            naive=Interval(
                PAIRS_INDEPENDENT, scale.estimate(part.naive.low), scale.estimate(part.naive.high)
            ),
            others=others,
            warnings=warnings,
        )
        return GroupContrast(*said, estimate, p, scale)

    def _smallest(self, weights: dict[str, float]) -> int:
        """Places of the smallest of the clouds concerned."""
        concerned = {cloud for name, weight in weights.items() if weight for cloud in ends(name)}
        clouds = np.array([name.partition(":")[0] for name in self.names])
        return min(len({*self.of_region[clouds == cloud]}) for cloud in concerned)

    def _permuted(self, c: np.ndarray, orders: np.ndarray) -> tuple[float, np.ndarray]:
        """t statistics of the contrast: the groups' columns turned so that one coefficient is the contrast."""
        stack = np.stack([*self.members.values()])
        covariate = np.tensordot(c / (c @ c), stack, axes=1)
        beside = np.stack([c, np.ones_like(c)])
        rest = np.linalg.svd(beside)[2][2:]
        others = [np.tensordot(row, stack, axes=1) for row in rest]
        return mrqap.t_statistics(self.y, covariate, [self.distance, *others], self.cells, orders)


def ends(group: str) -> tuple[str, str]:
    """The two clouds of a group's name: "aws-gcp" (unordered) or "aws>gcp" (ordered)."""
    one, _, other = group.partition(">" if ">" in group else "-")
    return one, other


def said(group: str) -> str:
    """
    A group of pairs in words.

    >>> said("aws-aws"), said("aws-gcp"), said("gcp>aws")
    ('within AWS', 'between AWS and Google Cloud', 'from Google Cloud to AWS')
    """
    one, other = (CLOUDS.get(cloud, cloud) for cloud in ends(group))
    if one == other:
        return f"within {one}"
    return f"from {one} to {other}" if ">" in group else f"between {one} and {other}"


def pairwise(groups: Sequence[str]) -> list[tuple[dict[str, float], tuple[str, str]]]:
    """Each group against each other: weights and words."""
    return [({a: 1.0, b: -1.0}, (said(a), said(b))) for a, b in combinations(groups, 2)]


def crossings(groups: Sequence[str]) -> list[tuple[dict[str, float], tuple[str, str]]]:
    """
    Each pair of different clouds against the mean of both clouds' own pairs: what crossing costs.

    What a cloud's regions have in common drops out: each cloud has half a share on either side.
    """
    found = []
    for name in groups:
        one, other = ends(name)
        within = f"{one}-{one}", f"{other}-{other}"
        if one != other and set(within) <= set(groups):
            weights = {name: 1.0, within[0]: -0.5, within[1]: -0.5}
            found.append((weights, (said(name), "within either (their mean)")))
    return found
