"""Compare models of throughput by how well they predict the pairs of left-out regions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import count, decimals, number, quantity
from wanbench.methods.regions import dyadic
from wanbench.methods.regions.dyadic import touches
from wanbench.methods.regions.line import ASSUMPTION, REFERENCES
from wanbench.methods.regions.pairs import Sample, require_regions
from wanbench.methods.result import LEVEL, Estimate, Result, t_quantile
from wanbench.methods.tcp.knee import MAD_TO_SD
from wanbench.methods.tcp.models import CONSTANT, Paths, ThroughputModel, throughput_models
from wanbench.methods.tcp.window_fit import COLUMNS, pairs_with_both

from . import robust_fit

SAME_CURVE = 1e-3  # Two models are the same curve if no pair's fitted throughput differs by more than 0.1 %
BEST = "best"
TIED = "tied with the best"
WORSE = "worse"
MIN_REGIONS = 5  # With fewer regions, the interval over left-out regions has too few degrees of freedom
# A pair is unexplained if every model but the constant misses it on the same side, with either region left out, by more
# than this factor (the noise of tests is smaller) and by more than this many robust standard deviations of residuals.
FACTOR = 2.0
ROBUST_Z = 3.0
METHOD = (
    "Huber's loss on log throughput; every pair of a region predicted by the fit to all pairs without that region; "
    f"interval from the dyadic-robust variance of the errors, leave-one-region-out form ({REFERENCES})"
)


@dataclass(frozen=True)
class Predictions:
    """
    One model's residuals of log throughput: arrays with a value per pair.

    in_sample: Measured minus fitted.
    left_out: Measured minus predicted, the mean of two predictions, each from a fit without one region of the pair.
    error: The mean of the absolute residuals of these two predictions.
    fitted: The fitted parameters as text.
    """

    name: str
    formula: str
    fitted: str
    n_parameters: int
    in_sample: np.ndarray
    left_out: np.ndarray
    error: np.ndarray


def cross_validate(
    models: Sequence[ThroughputModel], sample: Sample, paths: Paths, y: np.ndarray, groups: np.ndarray
) -> list[Predictions]:
    """
    Fit each model to each group of pairs: to all pairs of the group, and again without the pairs of each region.

    paths: RTT and distance of each pair.
    y: Log throughput (pairs,).
    groups: A label per pair (pairs,); every group has its own parameters.

    Raises ParameterError: a group has too few pairs when one region is left out.
    """
    kept = ~touches(sample.first, sample.second, sample.n_regions)
    labels = np.unique(groups)
    most = max(len(model.parameters) for model in models)
    for label in labels:
        left = kept[:, groups == label].sum(axis=1)
        if left.min() <= most:
            group = f" of {label}" if len(labels) > 1 else ""
            raise ParameterError(
                f"without {sample.regions[int(left.argmin())]} only {count(int(left.min()), 'pair')}{group} are left; "
                f"the models need more than {most}"
            )
    simpler: dict[str, dict[tuple[str, str], float]] = {label: {} for label in labels}
    predictions = []
    for model in models:
        in_sample, errors, fitted = np.empty(len(y)), np.empty((2, len(y))), []
        for label in labels:
            part = np.flatnonzero(groups == label)
            values, scale = robust_fit.fit(model, paths[part], y[part], simpler[label])
            symbols = [symbol for symbol, _ in model.parameters]
            simpler[label] |= {(model.name, symbol): value for symbol, value in zip(symbols, values, strict=True)}
            weights = kept[:, part].astype(float)
            without, _ = robust_fit.refit(model, paths[part], y[part], weights, values, scale)
            curves, column = model.curve(without, paths[part]), np.arange(len(part))
            in_sample[part] = y[part] - model.curve(values[None], paths[part])[0]
            for end, regions in enumerate((sample.first, sample.second)):
                errors[end, part] = y[part] - curves[regions[part], column]
            text = _parameters_text(model, values, model.bounds(paths[part], y[part]))
            fitted.append(f"{label}: {text}" if len(labels) > 1 else text)
        predictions.append(
            Predictions(
                name=model.name,
                formula=model.formula,
                fitted="; ".join(fitted),
                n_parameters=len(model.parameters) * len(labels),
                in_sample=in_sample,
                left_out=errors.mean(axis=0),
                error=np.abs(errors).mean(axis=0),
            )
        )
    return predictions


def _parameters_text(model: ThroughputModel, values: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]) -> str:
    """Return the fitted parameters as text; a parameter at its bound is called "not identified"."""
    if len(values) == 1:
        return quantity(exp(values[0]), "bit/s")
    if not model.parameters[0][1]:
        return f"{model.parameters[1][0]}: {values[1]:+.3g}"
    texts = []
    for (symbol, unit), value, low, high in zip(model.parameters, values, *bounds, strict=True):
        identified = low + 1e-6 < value < high - 1e-6
        texts.append(f"{symbol} = {quantity(exp(value), unit)}" if identified else f"{symbol} not identified")
    return ", ".join(texts)


def scores(predictions: list[Predictions], sample: Sample) -> pd.DataFrame:
    """Return the table `ModelComparison.scores`: one row per model, the best first."""
    fields = {name: [getattr(one, name) for one in predictions] for name in Predictions.__dataclass_fields__}
    in_sample, error, names = (np.array(fields[name]) for name in ("in_sample", "error", "name"))
    mean = error.mean(axis=1)
    same = np.abs(in_sample[:, None] - in_sample[None]).max(axis=2) < SAME_CURVE
    # Of models that are the same curve, the simplest counts as the best.
    best = min(np.flatnonzero(same[mean.argmin()]), key=lambda k: predictions[k].n_parameters)
    half = _half_widths(error, sample)
    difference, half_of_difference = mean - mean[best], _half_widths(error - error[best], sample)
    is_worse = (difference - half_of_difference > 0) & ~same[best]
    is_best = np.arange(len(mean)) == best
    columns = {"model": names} | {name: fields[name] for name in ("formula", "fitted", "n_parameters")}
    columns |= {"error_factor": np.exp(mean), "low": np.exp(mean - half), "high": np.exp(mean + half)}
    columns["median_factor"] = np.exp(np.median(error, axis=1))
    columns["in_sample_factor"] = np.exp(np.abs(in_sample).mean(axis=1))
    columns["verdict"] = np.where(is_best, BEST, np.where(is_worse, WORSE, TIED))
    alike = [", ".join(names[row & (names != name)]) for row, name in zip(same, names, strict=True)]
    table = pd.DataFrame(columns | {"same_curve_as": alike})
    return table.iloc[np.lexsort((mean, ~is_best))].reset_index(drop=True)


def _half_widths(values: np.ndarray, sample: Sample) -> np.ndarray:
    """Return half the width of the interval of the mean of each row of `values` (rows, pairs)."""
    without = dyadic.means_without(values.T, sample.first, sample.second, sample.n_regions)
    return t_quantile(LEVEL, sample.n_regions - 1) * np.sqrt(dyadic.variance(*without))


@dataclass(frozen=True, repr=False)
class ModelComparison(Result):
    """
    The models' scores on left-out regions.

    scores: One row per model, the best first. `error_factor` is the exponential of the mean absolute log error on
        left-out regions (1.5 means 50 % too high or a third too low), and `verdict` "best", "tied with the
        best" or "worse".
    pairs: The pairs, with a column "<model>: ratio" per model: measured over predicted throughput (geometric mean of
        the predictions without either region).
    unexplained: The pairs that every model but the constant misses in the same direction, by more than `FACTOR` times
        and `ROBUST_Z` robust standard deviations.
    """

    TITLE = "Models of throughput"

    scores: pd.DataFrame
    pairs: pd.DataFrame
    unexplained: pd.DataFrame
    n_regions: int
    notes: tuple[str, ...] = ()

    @property
    def counted(self) -> str:
        """The number of pairs as text: "66 pairs" or, with two directions, "132 ordered pairs"."""
        ordered = (self.pairs.region_a > self.pairs.region_b).any()
        return count(len(self.pairs), "ordered pair" if ordered else "pair")

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        ends = zip(self.pairs.region_a, self.pairs.region_b, strict=True)
        n_pairs = len({frozenset(end) for end in ends})
        return tuple(
            Estimate(
                f"error of {row.model} on left-out regions",
                f"On left-out regions, {row.model} errs by a factor of {{}} (mean absolute log error)",
                *(row.error_factor, row.low, row.high),
                unit="",
                n=n_pairs,
                n_regions=self.n_regions,
                method=METHOD,
                assumption=ASSUMPTION,
                warnings=self.notes,
            )
            for row in self.scores.itertuples(index=False)
        )

    @property
    def sentence(self) -> str:
        best, *others = self.estimates
        row, rest = self.scores.iloc[0], self.scores.iloc[1:]
        interval = (
            f"{best.formatted_level} interval {best.formatted_interval or 'none'}, with regions as independent units"
        )
        parts = [
            f"On left-out regions “{row.model}” predicts throughput best, to within a factor of {best.formatted} "
            f"({interval}; in sample {_like(best, row.in_sample_factor)}; "
            f"{self.counted} of {count(self.n_regions, 'region')})"
        ]
        worse = rest.verdict == WORSE
        same = ~worse & rest.same_curve_as.str.split(", ").map(lambda names: row.model in names)
        if same.any():
            parts.append(f"{_listed(rest.model[same])} {'is' if same.sum() == 1 else 'are'} the same curve")
        if (~worse & ~same).any():
            parts.append(f"{_listed(rest.model[~worse & ~same])} do not differ significantly from it")
        if worse.any():
            factors, named = [], set()
            for model, same_as, bad, estimate in zip(rest.model, rest.same_curve_as, worse, others, strict=True):
                if bad and model not in named:
                    named |= set(same_as.split(", "))
                    factors.append(
                        f"{model} {estimate.formatted}" + (f" (the same curve as {same_as})" if same_as else "")
                    )
            parts.append(f"Worse {'is' if worse.sum() == 1 else 'are'} {_listed(factors)}")
        n = len(self.unexplained)
        missed = f"{n:,} of the {self.counted} differ by more than {FACTOR:g} times, in one direction, from every model"
        return f"{'. '.join(parts)}. {missed} but “{CONSTANT}”."

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for row, one in zip(self.scores.itertuples(index=False), self.estimates, strict=True):
            cells = {"Model": row.model, "Fitted": row.fitted, "Error on left-out regions": f"x {one.formatted}"}
            cells |= {f"{one.formatted_level} interval": one.formatted_interval}
            cells |= {
                "Median": f"x {_like(one, row.median_factor)}",
                "In sample": f"x {_like(one, row.in_sample_factor)}",
            }
            rows.append(cells | {"Verdict": row.verdict})
        return pd.DataFrame(rows)


def compare_models(
    pairs: pd.DataFrame, *, transfer_s: float | None = None, ordered: bool = False, by_receiver: bool = False
) -> ModelComparison:
    """
    Fit the models of throughput, and score each by its predictions for left-out regions.

    Each pair is predicted twice, by a fit without its first region and by one without its second; its error is the mean
    of the two absolute log errors. A model is worse than the best one if the interval of the mean difference of their
    errors, with regions as units, lies above 0. At the 95 % level one in twenty equally good models is called worse by
    chance.

    Parameters
    ----------
    transfer_s : float, optional
        Duration of each transfer; without it the model "finite transfer" is not fitted.
    ordered : bool
        Whether the two directions of a pair are two rows, instead of their geometric mean.
    by_receiver : bool
        Whether to fit every model separately for each receiving cloud, because the window depends on the receiver;
        needs `ordered`.

    Raises ParameterError: there are fewer than 5 regions, or a group has too few pairs when one region is left out.
    """
    models = throughput_models(transfer_s)
    sample = pairs_with_both(pairs, ordered=ordered)
    require_regions(sample, MIN_REGIONS, "a comparison on left-out regions")
    frame, names = sample.frame, [model.name for model in models]
    paths = Paths(frame.rtt_ms.to_numpy(), frame.distance_km.to_numpy())
    y = np.log(frame.throughput_bps.to_numpy())
    groups = frame.region_b.str.partition(":")[0].to_numpy(dtype=object) if by_receiver else np.full(len(frame), "all")
    predictions = cross_validate(models, sample, paths, y, groups)
    table = scores(predictions, sample)
    for prediction in predictions:
        frame[f"{prediction.name}: ratio"] = np.exp(prediction.left_out)
    residual = np.array([prediction.left_out for prediction in predictions if prediction.name != CONSTANT])
    notes = sample.warnings()
    if "finite transfer" not in names:
        notes += ("the model finite transfer was not fitted, as transfer_s was not given",)
    if by_receiver:
        notes += ("each model is fitted separately for each receiving cloud",)
    return ModelComparison(table, frame, _unexplained(frame, residual), sample.n_regions, notes)


def _unexplained(frame: pd.DataFrame, residual: np.ndarray) -> pd.DataFrame:
    """Return the pairs that every model misses; `residual` is log(measured / predicted), (models, pairs)."""
    middle = np.median(residual, axis=1, keepdims=True)
    scale = MAD_TO_SD * np.median(np.abs(residual - middle), axis=1, keepdims=True)
    bound = np.maximum(log(FACTOR), ROBUST_Z * scale)
    missed = (residual > bound).all(axis=0) | (residual < -bound).all(axis=0)
    return frame[COLUMNS][missed].reset_index(drop=True)


def _like(estimate: Estimate, value: float) -> str:
    """Format `value` with as many decimals as the estimate has."""
    return number(value, decimals(estimate.estimate, estimate.low, estimate.high))


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return " and ".join(filter(None, [", ".join(first), last]))
