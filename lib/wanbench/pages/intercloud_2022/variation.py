"""Measure variation between repeated tests of one ordered pair, and of pairs about their line on distance."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from wanbench.checks import check_columns
from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.distance.straight_lines import THOUSAND_KM
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.line import ASSUMPTION, BOOTSTRAP
from wanbench.methods.regions.pairs import FEWEST_FOR_INTERVAL, Sample, require_regions
from wanbench.methods.regions.places import unit_of_region, units
from wanbench.methods.result import Estimate, Result, tails
from wanbench.methods.tcp.window_fit import pairs_with_both

METHOD = "percentile interval of a bootstrap over regions (Davezies, D'Haultfœuille & Guyonvarch 2021)"
REPEATED = (
    "Which pairs were repeated does not depend on the results, and repeated tests see the same path; tests minutes "
    "apart do not show how much days differ"
)
ENDS = ["from_region", "to_region"]
# Nearer pairs are left out: where the line of RTT is close to zero, the factor of a deviation says little
MIN_DISTANCE_KM = 500.0
REFERENCES = "Snijders & Borgatti 1999; Davezies, D'Haultfœuille & Guyonvarch 2021"


@dataclass(frozen=True, repr=False)
class Repeats(Result):
    """
    How much repeated tests of one ordered pair differ.

    factor: The median over ordered pairs of a pair's largest over its smallest value.
    pairs: The ordered pairs with two tests or more: from_region, to_region, n_tests, smallest, largest, factor.
    """

    TITLE = "Repeated tests of one ordered pair"

    factor: Estimate
    pairs: pd.DataFrame

    @property
    def sentence(self) -> str:
        return self.factor.sentence


def repeats(tests: pd.DataFrame, column: str, *, resamples: int = 4_000, seed: int = 0) -> Repeats:
    """
    Compare the values in `column` of repeated tests of the same ordered pair.

    Tests whose value is missing or not positive are left out and counted.

    Raises ParameterError: a column is missing, or no ordered pair was tested twice.
    """
    check_columns("tests", tests, [*ENDS, column])
    rows = tests[ENDS].assign(value=tests[column].astype("float64"))
    rows = rows[rows.value > 0]
    n_without = len(tests) - len(rows)
    warnings = (f"{count(n_without, 'test')} without {column} left out",) if n_without else ()
    values = rows.groupby(ENDS).value.agg(n_tests="size", smallest="min", largest="max")
    pairs = values[values.n_tests > 1].reset_index()
    if pairs.empty:
        raise ParameterError(f"no ordered pair has two tests with {column}")
    pairs["factor"] = pairs.largest / pairs.smallest
    regions = sorted({*pairs.from_region, *pairs.to_region})
    first, second = (np.searchsorted(regions, pairs[end].to_numpy()) for end in ENDS)
    ends = nan, nan
    if len(regions) < FEWEST_FOR_INTERVAL:
        warnings += (f"no interval from {len(regions)} regions; it needs {FEWEST_FOR_INTERVAL}",)
    else:
        weights = dyadic.region_weights(len(regions), resamples, seed)
        ends = np.nanquantile(dyadic.weighted_median(pairs.factor.to_numpy(), weights, first, second), tails())
    name = {"rtt_ms": "RTT", "throughput_bps": "throughput"}.get(column, column)
    factor = Estimate(
        f"factor between repeated tests, {name}",
        f"Two tests of one ordered pair differ in {name} by a factor of {{}} in the median",
        *(float(pairs.factor.median()), *ends),
        unit="",
        n=len({frozenset(ends) for ends in zip(first, second, strict=True)}),
        n_regions=len(regions),
        method=f"median over the {len(pairs):,} ordered pairs that were repeated; {METHOD}",
        assumption=REPEATED,
        warnings=warnings,
    )
    return Repeats(factor, pairs)


@dataclass(frozen=True, repr=False)
class Scatter(Result):
    """
    How far pairs deviate from the line of RTT, and of log throughput, over distance.

    rtt, throughput: The factor by which the median pair deviates from the line: exp of the median absolute log
        residual.
    ratio: log(`throughput`) / log(`rtt`): if above 1, throughput scatters more.
    """

    TITLE = "How far pairs lie from the line on distance"

    rtt: Estimate
    throughput: Estimate
    ratio: Estimate

    @property
    def sentence(self) -> str:
        return " ".join(estimate.sentence for estimate in self.estimates)


def scatter(pairs: pd.DataFrame, *, resamples: int = 1_000, seed: int = 0) -> Scatter:
    """
    Estimate the scatter of RTT, and of log throughput, about their least-squares lines over distance, as factors.

    Only unordered pairs at least 500 km apart with both values are used; the number of nearer pairs is reported.
    """
    whole = pairs_with_both(pairs)
    far = whole.frame.distance_km >= MIN_DISTANCE_KM
    sample = Sample(whole.column, whole.frame[far].reset_index(drop=True), whole.left_out)
    require_regions(sample, 3, "the scatter")
    frame = sample.frame
    x, rtt_ms = frame.distance_km.to_numpy() / THOUSAND_KM, frame.rtt_ms.to_numpy()
    log_throughput = np.log(frame.throughput_bps.to_numpy())
    # The near pairs that are left out still say which regions share a place.
    place_of = unit_of_region(whole)
    places = units(sample, {name: place_of[name] for name in sample.regions})
    warnings = sample.warnings()
    if not far.all():
        warnings += (f"{count(int((~far).sum()), 'pair')} nearer than {MIN_DISTANCE_KM:g} km left out",)
    warnings += places.warnings()
    logs = _log_scatter(x, rtt_ms, log_throughput, np.ones((1, len(x))))[0]
    ends = np.full((2, 3), nan)
    if places.n >= FEWEST_FOR_INTERVAL:
        weights = dyadic.region_weights(places.n, resamples, seed)
        weights = dyadic.pair_weights(weights, places.first, places.second)
        drawn = _log_scatter(x, rtt_ms, log_throughput, weights)
        ends = np.column_stack([_percentiles(column) for column in drawn.T])

    rtt, throughput = np.exp([logs[:2], *ends[:, :2]]).T
    claim = "A pair typically deviates from the line of {} by a factor of {{}}"
    ratio_claim = "On log scales throughput scatters {} times as much as RTT"
    common = sample.counted(places.n) | {
        "unit": "",
        "method": f"median absolute log residual of a least-squares line on distance, pairs of at least "
        f"{MIN_DISTANCE_KM:g} km; percentile interval of a {BOOTSTRAP} ({REFERENCES})",
        "assumption": ASSUMPTION,
        "warnings": warnings,
    }
    return Scatter(
        Estimate("scatter of RTT", claim.format("RTT"), *rtt, **common),
        Estimate("scatter of throughput", claim.format("log throughput"), *throughput, **common),
        Estimate("scatter of throughput over that of RTT", ratio_claim, logs[2], *ends[:, 2], **common),
    )


def _percentiles(values: np.ndarray) -> np.ndarray:
    values = values[np.isfinite(values)]
    return np.quantile(values, tails()) if len(values) else np.full(2, nan)


def _log_scatter(x: np.ndarray, rtt_ms: np.ndarray, log_throughput: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return, per row of `weights`, the median absolute log residuals of RTT and of throughput, and their ratio."""
    medians = np.empty((len(weights), 3))
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = x - weights @ x[:, None] / total
        squares = (weights * centred**2).sum(axis=1, keepdims=True)
        for k, y in enumerate((rtt_ms, log_throughput)):
            slope = (weights * centred) @ y[:, None] / squares
            line = weights @ y[:, None] / total + slope * centred
            # RTT is fitted by a straight line, so its residual is a ratio; throughput is a logarithm already.
            residual = np.log(y / np.where(line > 0, line, nan)) if k == 0 else y - line
            medians[:, k] = _weighted_medians(np.abs(residual), weights)
        medians[:, 2] = medians[:, 1] / medians[:, 0]
    return medians


def _weighted_medians(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted median of each row of values (rows, n), the lower one if two qualify; NaN has no weight."""
    order = np.argsort(values, axis=1)
    weights = np.take_along_axis(np.where(np.isnan(values), 0.0, weights), order, axis=1)
    running = np.cumsum(weights, axis=1)
    middle = (running < running[:, -1:] / 2).sum(axis=1)[:, None]
    return np.take_along_axis(np.take_along_axis(values, order, axis=1), middle, axis=1)[:, 0]
