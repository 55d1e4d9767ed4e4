"""Fits of each model without each region in turn, and their predictions of that region's pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from wanbench.errors import ParameterError
from wanbench.formatting import count, quantity
from wanbench.methods.regions.dyadic import touches
from wanbench.methods.regions.unordered_pairs import Sample

from . import robust_fit
from .models import Paths, ThroughputModel


@dataclass(frozen=True)
class Predictions:
    """
    One model's residuals of log throughput per pair.

    `in_sample` is measured less fitted; `left_out` measured less predicted, the mean over both left-out regions;
    `error` the mean of both absolute values. `fitted` has the fitted parameters as text.
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
    Fit each model to each group of pairs, with all regions and without each one.

    Parameters
    ----------
    y : array (pairs,)
        Log throughput.
    groups : array (pairs,)
        A label per pair; every group has its own parameters.

    Raises
    ------
    ParameterError
        If a group has too few pairs when one region is left out.
    """
    kept = ~touches(sample.first, sample.second, sample.n_regions)
    labels = np.unique(groups)
    _check_enough_pairs(models, sample, kept, groups)
    simpler: dict[str, dict] = {label: {} for label in labels}
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


def _check_enough_pairs(models, sample: Sample, kept: np.ndarray, groups: np.ndarray) -> None:
    max_parameters = max(len(model.parameters) for model in models)
    labels = np.unique(groups)
    for label in labels:
        left = kept[:, groups == label].sum(axis=1)
        if left.min() <= max_parameters:
            group = f" of {label}" if len(labels) > 1 else ""
            raise ParameterError(
                f"without {sample.regions[int(left.argmin())]} only {count(int(left.min()), 'pair')}{group} are left; "
                f"the models need more than {max_parameters}"
            )


def _parameters_text(model: ThroughputModel, values: np.ndarray, bounds) -> str:
    """The fitted parameters as text; one at its bound is not identified."""
    if len(values) == 1:
        return quantity(exp(values[0]), "bit/s")
    if not model.parameters[0][1]:
        return f"{model.parameters[1][0]}: {values[1]:+.3g}"
    texts = []
    for (symbol, unit), value, low, high in zip(model.parameters, values, *bounds, strict=True):
        identified = low + 1e-6 < value < high - 1e-6
        texts.append(f"{symbol} = {quantity(exp(value), unit)}" if identified else f"{symbol} not identified")
    return ", ".join(texts)
