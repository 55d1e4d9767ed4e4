"""
Fit least squares over pairs without each region in turn, and derive the variance of the coefficients (jackknife).

The jackknife variance over regions (Quenouille 1956; MacKinnon, Nielsen & Webb 2023) is never negative and needs no
model. But each pair belongs to two regions, so this variance is too large. The factor depends on how much of the
scatter is specific to single pairs. A working model yields the factor, from the expectation of the jackknife variance,
and the degrees of freedom, from its variance (as in Bell & McCaffrey 2002 and Imbens & Kolesár 2016).

The model is y = X b + u_first'x + u_second'x + e: each region adds one random vector u to the coefficients of all its
pairs, and each pair has an independent error e (Snijders & Kenny 1999). The variance components come from restricted
maximum likelihood (Patterson & Thompson 1971), computed as iterated MINQUE (Rao 1971).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Any

import numpy as np

from wanbench.methods.result import t_quantile

from . import dyadic

ROUNDS = 30  # Limit of the iteration, which usually converges earlier
CLOSE = 1e-3  # Change of the components, as a share of the residual variance, that counts as converged
SMALLEST = 1e-6  # Smallest share of the residual variance for single pairs, which keeps the equations regular
FEWEST_DEGREES = 1.5  # Smallest degrees of freedom: with fewer, the t quantile is too large to be of use
SINGULAR = 1e-9  # Eigenvalues below this share of the largest are zero up to rounding
LOST = 1e-6  # Entries of a projection above this are more than rounding
FEWEST_REGIONS = 3  # Two regions have a single pair, whose scatter cannot be split into components


@dataclass(frozen=True)
class Sums:
    """
    Sums over pairs, for every two regions, from which least squares can leave out any region.

    outer: Array (regions, regions, k, k): the sum of x x' over the pairs of two regions, symmetric in the regions. A
        pair within one unit counts twice, on the diagonal.
    cross: Array (regions, regions, k): the sum of x y, likewise.
    square: The sum of y^2.
    """

    outer: np.ndarray
    cross: np.ndarray
    square: float
    n_pairs: int

    @classmethod
    def of(cls, design: np.ndarray, y: np.ndarray, first: np.ndarray, second: np.ndarray, n_regions: int) -> Sums:
        """Compute the sums from a design (pairs, k), y (pairs,), and the indices of each pair's regions."""
        k = design.shape[1]
        outer, cross = np.zeros((n_regions, n_regions, k, k)), np.zeros((n_regions, n_regions, k))
        for a, b in ((first, second), (second, first)):
            np.add.at(outer, (a, b), design[:, :, None] * design[:, None, :])
            np.add.at(cross, (a, b), design * y[:, None])
        return cls(outer, cross, float(y @ y), len(y))

    @property
    def n_regions(self) -> int:
        return len(self.outer)

    @property
    def k(self) -> int:
        return self.outer.shape[-1]

    @cached_property
    def outer_of_region(self) -> np.ndarray:
        """Sum of x x' over the pairs of each region; pairs within the region count twice."""
        return self.outer.sum(axis=1)

    @cached_property
    def cross_of_region(self) -> np.ndarray:
        return self.cross.sum(axis=1)

    @cached_property
    def own_outer(self) -> np.ndarray:
        """Sum of x x' over the pairs of each region, each pair once: subtracting it leaves the region out."""
        return self.outer_of_region - np.einsum("gg...->g...", self.outer) / 2

    @cached_property
    def total_outer(self) -> np.ndarray:
        return self.outer_of_region.sum(axis=0) / 2

    @cached_property
    def total_cross(self) -> np.ndarray:
        return self.cross_of_region.sum(axis=0) / 2

    @cached_property
    def shared(self) -> np.ndarray:
        """U'U, where U (pairs, regions x k) maps the effects of regions to their pairs."""
        blocks = self.outer.copy()
        blocks[np.arange(self.n_regions), np.arange(self.n_regions)] += self.outer_of_region
        return blocks.transpose(0, 2, 1, 3).reshape(self.n_regions * self.k, self.n_regions * self.k)


@dataclass(frozen=True)
class Components:
    """Variance components: of a pair's independent error, and of a region's effects on the coefficients (k, k)."""

    pair: float
    region: np.ndarray


def reml(sums: Sums, random: int | None = None) -> Components:
    """
    Estimate the variance components of the working model, with a positive semidefinite covariance of regions.

    sums: The sums for a y with unit variance and a design whose columns have similar sizes.
    random: Number of coefficients, from the first, that regions affect; default: all.
    """
    k = sums.k
    q = k if random is None else random
    basis = [(a, b) for a in range(q) for b in range(a, q)]
    forms = np.zeros((len(basis), q, q))
    for form, (a, b) in zip(forms, basis, strict=True):
        form[a, b] = form[b, a] = 1.0
    residual = sums.square - sums.total_cross @ np.linalg.solve(sums.total_outer, sums.total_cross)
    residual = float(residual / max(sums.n_pairs - k, 1))
    if not residual > SMALLEST**2:
        return Components(1.0, np.zeros((k, k)))
    smallest = SMALLEST * residual
    pair, region = residual / 2, np.eye(q) * residual / 4 / q
    for _ in range(ROUNDS):
        matrix, right = _equations(sums, pair, region, forms)
        try:
            solved = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            solved = np.linalg.lstsq(matrix, right, rcond=None)[0]
        # Take the nearest positive semidefinite matrix.
        sizes, axes = np.linalg.eigh(np.tensordot(solved[1:], forms, axes=1))
        new_region = (axes * np.maximum(sizes, 0)) @ axes.T
        kept = np.array([new_region[a, b] for a, b in basis])
        new_pair = max((right[0] - matrix[0, 1:] @ kept) / matrix[0, 0], smallest)
        moved = max(abs(new_pair - pair), np.abs(new_region - region).max())
        pair, region = new_pair, new_region
        if moved < CLOSE * residual:
            break
    return Components(float(pair), np.pad(region, (0, k - q)))


def _equations(sums: Sums, pair: float, region: np.ndarray, forms: np.ndarray):
    """
    Compute both sides of the MINQUE equations, at the current variance components.

    With P = V^-1 - V^-1 X (X' V^-1 X)^-1 X' V^-1 and V_i the derivative of V = Var(y) by component i, the left side is
    tr(P V_i P V_j) and the right side y' P V_i P y. Woodbury's formula replaces V^-1, (pairs, pairs), by matrices of
    size regions x k.
    """
    G, k = sums.n_regions, len(region)
    shared = sums.shared.reshape(G, sums.k, G, sums.k)[:, :k, :, :k].reshape(G * k, G * k)
    values, vectors = np.linalg.eigh(region)
    spread = np.kron(np.eye(G), vectors * np.sqrt(np.maximum(values, 0)))
    inner = np.linalg.inv(pair * np.eye(G * k) + spread.T @ shared @ spread)
    q = spread @ inner @ spread.T
    q2 = 2 * q - q @ shared @ q
    ux, uy = sums.outer_of_region[:, :k].reshape(G * k, sums.k), sums.cross_of_region[:, :k].reshape(G * k)
    xx, xy, yy = sums.total_outer, sums.total_cross, sums.square

    def once(ab: np.ndarray, au: np.ndarray, ub: np.ndarray):
        """Return A' V^-1 B from A'B, A'U and U'B."""
        return (ab - au @ q @ ub) / pair

    def twice(ab: float | np.ndarray, au: np.ndarray, ub: np.ndarray):
        """Return A' V^-2 B from the same products."""
        return (ab - au @ q2 @ ub) / pair**2

    uvx, xvx = once(ux, shared, ux), once(xx, ux.T, ux)
    xvvx, uvvx = twice(xx, ux.T, ux), twice(ux, shared, ux)
    h = np.linalg.inv(xvx)
    b = h @ once(xy, ux.T, uy)
    once_u = once(shared, shared, shared) - uvx @ h @ uvx.T
    mixed = uvvx @ h @ uvx.T
    twice_u = twice(shared, shared, shared) - mixed - mixed.T + uvx @ h @ xvvx @ h @ uvx.T
    upy = once(uy, shared, uy) - uvx @ b
    trace = (sums.n_pairs - (q * shared).sum()) / pair - np.trace(h @ xvvx)
    diagonal = np.einsum("gagb->ab", twice_u.reshape(G, k, G, k))
    blocks = once_u.reshape(G, k, G, k)
    applied = [blocks @ form for form in forms]
    n = 1 + len(forms)
    matrix, right = np.zeros((n, n)), np.zeros(n)
    matrix[0, 1:] = matrix[1:, 0] = [(diagonal * form).sum() for form in forms]
    # tr(P V P) = tr(P), so the entry of the pairs' component follows from the entries of the regions' components.
    of_regions = sum(
        region[np.unravel_index(form.argmax(), form.shape)] * entry
        for form, entry in zip(forms, matrix[0, 1:], strict=True)
    )
    matrix[0, 0] = (trace - of_regions) / pair
    for i, a in enumerate(applied):
        for j, c in enumerate(applied):
            matrix[1 + i, 1 + j] = (a.reshape(G * k, -1) * c.reshape(G * k, -1).T).sum()
    right[0] = twice(yy, uy, uy) - 2 * b @ twice(xy, ux.T, uy) + b @ xvvx @ b
    effects = upy.reshape(G, k)
    right[1:] = [np.einsum("ga,ab,gb->", effects, form, effects) for form in forms]
    return matrix, right


@dataclass(frozen=True)
class LeaveOut:
    """
    A least-squares fit to all pairs and without each region, and its covariance under the working model.

    coefficients, model: Coefficients (k,) and their covariance (k, k).
    without_region, model_without: Coefficients without each region (regions, k), and their covariance about their mean
        (regions, k, regions, k).
    lost: Array (regions, k, k): projection onto the combinations of coefficients that cannot be determined without the
        region.
    """

    coefficients: np.ndarray
    without_region: np.ndarray
    model: np.ndarray
    model_without: np.ndarray
    lost: np.ndarray

    def determined(self, combination: np.typing.ArrayLike) -> Any:
        """Return whether each combination (..., k) of coefficients can be determined without any single region."""
        moved = np.einsum("gab,...b->...ga", self.lost, np.asarray(combination, dtype=float))
        return np.abs(moved).max(axis=(-2, -1)) < LOST

    def _expected(self, combination: np.typing.ArrayLike) -> np.ndarray:
        """
        Return the covariance, by the model, of a combination's values without each region: (..., regions, regions).
        """
        combination = np.asarray(combination, dtype=float)
        return np.einsum("...a,gahb,...b->...gh", combination, self.model_without, combination)

    def scale(self, combination: np.typing.ArrayLike) -> Any:
        """
        Return the factor that corrects the jackknife variance of a combination (..., k): its true variance over the
        expectation of its jackknife variance, both under the working model.
        """
        combination, n = np.asarray(combination, dtype=float), len(self.without_region)
        model = np.einsum("...a,ab,...b->...", combination, self.model, combination)
        with np.errstate(divide="ignore", invalid="ignore"):
            return model / ((n - 1) / n * np.einsum("...gg->...", self._expected(combination)))

    def spread(self, combination: np.typing.ArrayLike) -> tuple[Any, Any]:
        """
        Compute the variance and degrees of freedom of combinations (..., k) of the coefficients.

        The variance is NaN if the combination is undetermined without some region.
        """
        expected = self._expected(combination)
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = np.einsum("...gg->...", expected) ** 2 / (expected**2).sum(axis=(-2, -1))
        moved = self.without_region @ np.asarray(combination, dtype=float).T
        variance = self.scale(combination) * dyadic.jackknife(moved)
        return np.where(self.determined(combination), variance, np.nan), np.maximum(freedom, FEWEST_DEGREES)

    def half(self, combination: np.typing.ArrayLike, level: float) -> Any:
        """Compute half the width of the interval of combinations (..., k) of the coefficients."""
        variance, freedom = self.spread(combination)
        with np.errstate(invalid="ignore"):
            return t_quantile(level, freedom) * np.sqrt(variance)


def leave_out(sums: Sums, components: Components) -> LeaveOut:
    """Fit without each region in turn; of equally good solutions, take the one with the smallest norm."""
    G, k = sums.n_regions, sums.k
    inverse = np.linalg.inv(sums.total_outer)
    largest = np.abs(sums.total_outer).max()
    left, lost = pseudo_inverses(sums.total_outer - sums.own_outer, SINGULAR * largest)
    own_cross = sums.cross_of_region - np.einsum("gg...->g...", sums.cross) / 2
    without = np.einsum("gab,gb->ga", left, sums.total_cross - own_cross)
    # `neither` sums x x' over the pairs with neither region g nor h, `others` over the pairs of h without g. The
    # coefficients without g and without h share the errors of the former pairs, and effects of regions by the latter.
    neither = sums.total_outer - sums.own_outer[:, None] - sums.own_outer[None, :] + sums.outer
    own = np.arange(G)
    neither[own, own] = sums.total_outer - sums.own_outer
    others = sums.outer_of_region[None, :] - sums.outer
    others[own, own] = 0.0
    reach = np.einsum("gab,ghbc->gahc", left, others)
    middle = np.einsum("gahb,bc->gahc", reach, components.region).reshape(G * k, G * k)
    omega = (middle @ reach.reshape(G * k, G * k).T).reshape(G, k, G, k)
    omega = omega + components.pair * np.einsum("gab,ghbc,hcd->gahd", left, neither, left)
    omega = omega - omega.mean(axis=0, keepdims=True)
    omega = omega - omega.mean(axis=2, keepdims=True)
    through = np.einsum("ab,gbc->gac", inverse, sums.outer_of_region)
    model = components.pair * inverse + np.einsum("gab,bc,gdc->ad", through, components.region, through)
    return LeaveOut(inverse @ sums.total_cross, without, model, omega, lost)


def pseudo_inverses(matrices: np.ndarray, zero: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Compute the pseudo-inverses of symmetric matrices (cases, k, k), and the projections onto their null spaces.

    Eigenvalues up to `zero` count as zero.
    """
    size, axes = np.linalg.eigh(matrices)
    used = size > zero
    inverse = np.where(used, 1 / np.where(used, size, 1.0), 0.0)
    return tuple(np.einsum("gij,gj,gkj->gik", axes, part, axes) for part in (inverse, (~used).astype(float)))


def share_and_freedom(values: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """
    Split the variance of values (pairs,) by the working model, with effects of regions on the mean.

    first, second: Integer labels of each pair's regions.

    Returns: the share of the variance that is specific to single pairs, and the degrees of freedom of the jackknife
        variance of the mean over regions. With fewer than 3 regions or constant values: 1 and NaN.
    """
    regions = np.unique(np.concatenate([first, second]))
    spread = values.std() if len(values) else 0.0
    if len(regions) < FEWEST_REGIONS or not spread > 0:
        return 1.0, nan
    ends = np.searchsorted(regions, first), np.searchsorted(regions, second)
    sums = Sums.of(np.ones((len(values), 1)), values / spread, *ends, len(regions))
    components = reml(sums)
    freedom = float(leave_out(sums, components).spread([1.0])[1])
    return components.pair / (components.pair + 2 * float(components.region[0, 0])), freedom
