"""Fits of a model without each region in turn, and what they say of that region's pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from ...errors import ParameterError
from ...formatting import count, quantity
from ..regions.unordered_pairs import Sample
from . import curve_fit as fitting
from .curves import Form, Paths


@dataclass(frozen=True)
class Predicted:
    """
    One model's residuals of log throughput per pair.

    `inside` is measured less fitted; `outside` measured less predicted, the mean over both left-out regions; `error`
    the mean of both absolute values.
    """

    name: str
    says: str
    fitted: str
    n_numbers: int
    inside: np.ndarray
    outside: np.ndarray
    error: np.ndarray


def predict(
    chosen: Sequence[Form], sample: Sample, paths: Paths, y: np.ndarray, group: np.ndarray
) -> list[Predicted]:
    """
    Fit each form to each group of pairs, and without each region.

    Raises
    ------
    ParameterError
        Where a region less leaves a group too few pairs.
    """
    region = np.arange(sample.n_regions)[:, None]
    first, second = sample.first, sample.second
    kept = (first != region) & (second != region)
    most = max(len(form.parameters) for form in chosen)
    labels = np.unique(group)
    for label in labels:
        among = f" of {label}" if len(labels) > 1 else ""
        thin = kept[:, group == label].sum(axis=1)
        if thin.min() <= most:
            raise ParameterError(
                f"without {sample.regions[int(thin.argmin())]} only {count(int(thin.min()), 'pair')}{among} are left; "
                f"the models need more than {most}"
            )
    known: dict[str, dict] = {label: {} for label in labels}
    found = []
    for form in chosen:
        inside, twice, said = np.empty(len(y)), np.empty((2, len(y))), []
        for label in labels:
            part = np.flatnonzero(group == label)
            there, values = Paths(paths.rtt_ms[part], paths.distance_km[part]), y[part]
            numbers, scale = fitting.fit(form, there, values, known[label])
            known[label] |= {
                (form.name, symbol): value
                for (symbol, _), value in zip(form.parameters, numbers, strict=True)
            }
            without, _ = fitting.refit(form, there, values, kept[:, part].astype(float), numbers, scale)
            curves, at = form.curve(without, there), np.arange(len(part))
            inside[part] = values - form.curve(numbers[None], there)[0]
            twice[:, part] = values - np.stack([curves[first[part], at], curves[second[part], at]])
            words = _written(form, numbers, form.bounds(there, values))
            said.append(f"{label}: {words}" if len(labels) > 1 else words)
        found.append(
            Predicted(
                name=form.name,
                says=form.says,
                fitted="; ".join(said),
                n_numbers=len(form.parameters) * len(labels),
                inside=inside,
                outside=twice.mean(axis=0),
                error=np.abs(twice).mean(axis=0),
            )
        )
    return found


def _written(form: Form, numbers: np.ndarray, bounds) -> str:
    """The fitted numbers in words; one at its bound is not identified."""
    said = []
    for (symbol, unit), value, low, high in zip(form.parameters, numbers, *bounds, strict=True):
        if not unit:
            continue
        if not low + 1e-6 < value < high - 1e-6:
            said.append(f"{symbol} not identified")
        else:
            said.append(f"{symbol} = {quantity(exp(value), unit)}")
    if not said and len(numbers) == 1:
        return quantity(exp(numbers[0]), "bit/s")
    if not said:
        return f"{form.parameters[1][0]}: {numbers[1]:+.3g}"
    return ", ".join(said)
