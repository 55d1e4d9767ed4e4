"""
Predict RTT and throughput of a pair that was not measured, with prediction intervals.

The predicted RTT is a robust line over distance plus a shrunken effect of each region, but at least the RTT of light in
fibre. Log throughput is predicted by the window-limited model at the predicted RTT, or by a line over distance,
whichever has the smaller error on left-out regions; effects of regions are added. Prediction intervals are conformal.
They depend on whether both, one or neither of the pair's regions have other measured pairs. `prediction_fits` has the
fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, exp, isfinite

import numpy as np
import pandas as pd

from wanbench import regions as catalogue
from wanbench.checks import check_level, check_number, refusal
from wanbench.errors import ParameterError
from wanbench.formatting import count, percent, quantity
from wanbench.methods.regions.pairs import Sample, check_pairs, require_regions, unordered
from wanbench.methods.result import Estimate, Result

from . import prediction_fits
from .prediction_fits import SITUATIONS, NewPairs

# With fewer measured pairs, a region's effect is less accurate than for the left-out regions that set the interval's
# width
FEW_PAIRS = 3
MAX_DISTANCE_KM = 40_075.0  # Length of the equator
MAX_LOG = 700.0  # Largest logarithm whose exponential fits into a float
UNITS = {"rtt_ms": "ms", "throughput_bps": "bit/s"}
CONFORMAL = (
    "jackknife+ over {} left out (Barber, Candès, Ramdas & Tibshirani 2021; pooled by unit: Dunn, Wasserman & "
    "Ramdas 2023)"
)
LEFT_OUT = {"both": "pairs", "one": "regions", "none": "both regions of a pair"}
ASSUMPTION = (
    "The pair resembles the measured pairs: neither it nor its regions are exceptional; hosts, tool and load are equal"
)


@dataclass(frozen=True, repr=False)
class Prediction(Result):
    """
    Predicted RTT and throughput of one ordered pair.

    situation: Which of the pair's regions have other measured pairs: "both", "one" or "none".
    rtt, throughput: In ms and bit/s, with prediction intervals for one measurement, not for a mean. `throughput` is
        None if fewer than 10 pairs have a throughput. With too few regions, the upper end is infinite, and the lower
        end is 0 or the RTT of light.
    measured: Measured values of this pair by name, `rtt_ms` and `throughput_bps`, for comparison.
    """

    from_region: str
    to_region: str
    situation: str
    distance_km: float
    light_rtt_ms: float
    rtt: Estimate
    throughput: Estimate | None
    measured: Mapping[str, float]

    TITLE = "Prediction for one measurement of the pair"

    @property
    def sentence(self) -> str:
        sentences = [estimate.sentence for estimate in self.estimates]
        if self.measured:
            values = " and ".join(quantity(value, UNITS[name]) for name, value in self.measured.items())
            sentences.append(f"This pair was also measured ({values}); the prediction does not use these values.")
        return " ".join(sentences)


@dataclass(frozen=True)
class Predictor:
    """
    The fits of RTT and throughput to one survey, from which `predict` predicts any pair.

    level: Level of the prediction intervals.
    pairs: Table `pairs`, for distances and measured values.
    sample: The unordered pairs with an RTT, to which RTT is fitted.
    """

    level: float
    fits: prediction_fits.Fits
    pairs: pd.DataFrame
    sample: Sample

    def predict(self, from_region: str, to_region: str, *, distance_km: float | None = None) -> Prediction:
        """
        Predict RTT and throughput of one ordered pair.

        The fits may have used measurements of this pair; `what_if` predicts a pair without its own measurements.
        `distance_km` replaces the distance from the pairs or the catalogue; regions without coordinates need it.
        """
        ends = (from_region, to_region)
        if from_region == to_region:
            raise refusal("to_region", to_region, "a region other than from_region")
        distance = self._distance_km(ends, distance_km)
        index = {name: k for k, name in enumerate(self.sample.regions)}
        indices = [index.get(name, -1) for name in ends]
        situation = ("none", "one", "both")[sum(k >= 0 for k in indices)]
        new = NewPairs(np.array(indices[:1]), np.array(indices[1:]), np.array([distance]))
        notes = self.sample.warnings()
        for name, k in zip(ends, indices, strict=True):
            if k >= 0 and (n := int(self.fits.rtt.observed.measured[k])) < FEW_PAIRS:
                notes += (f"{name} has only {count(n, 'measured pair')}, so the interval may be too narrow",)
        light = float(catalogue.light_rtt_ms(distance))
        return Prediction(
            *ends,
            situation,
            distance,
            light,
            rtt=self._estimate("rtt_ms", ends, situation, new, notes, light),
            throughput=self._estimate("throughput_bps", ends, situation, new, notes) if self.fits.base else None,
            measured=self._measured(ends),
        )

    def _estimate(
        self, name: str, ends: tuple[str, str], situation: str, new: NewPairs, notes: tuple[str, ...], floor: float = 0
    ) -> Estimate:
        predicted = self.fits.predict(name, situation, new, self.level)
        values = [float(ends[0]) for ends in (predicted.value, predicted.low, predicted.high)]
        if not all(map(isfinite, values)):
            needed = ceil(self.level / (1 - self.level) - 1e-9)
            units = "pairs" if situation == "both" else "regions"
            notes += (f"open interval: {percent(self.level)} needs {needed} {units}; there are {predicted.n_units}",)
        if name == "rtt_ms":
            what, model, fit = "RTT", self.fits.rtt, "robust line over distance"
        else:
            what, model = "throughput", self.fits.throughput
            by_window = self.fits.base == "window"
            fit = "window-limited model at the predicted RTT," if by_window else "log10 over distance,"
            values = [exp(min(value, MAX_LOG)) if value < np.inf else value for value in values]
        return Estimate(
            f"predicted {what}",
            f"Given that {SITUATIONS[situation]}, the {what} from {ends[0]} to {ends[1]} is predicted as {{}}",
            *(max(value, floor) for value in values),
            unit=UNITS[name],
            n=len(model.observed),
            n_regions=int((model.observed.measured > 0).sum()),
            method=f"{fit} with effects of regions, shrunk towards zero; prediction interval by "
            f"{CONFORMAL.format(LEFT_OUT[situation])}",
            assumption=ASSUMPTION,
            level=self.level,
            warnings=notes,
        )

    def _measured(self, ends: tuple[str, str]) -> dict[str, float]:
        here = self.pairs[(self.pairs.from_region == ends[0]) & (self.pairs.to_region == ends[1])]
        names = [name for name in UNITS if name in here]
        return {name: float(here[name].median()) for name in names if here[name].notna().any()}

    def _distance_km(self, ends: tuple[str, str], given: float | None) -> float:
        if given is not None:
            return float(check_number("distance_km", given, 0, MAX_DISTANCE_KM))
        distances = self.pairs.distance_km[_between(self.pairs, ends)].dropna()
        if len(distances):
            return float(distances.median())
        first, second = (self._coordinates(name) for name in ends)
        return catalogue.geodesic_km(first, second)

    def _coordinates(self, name: str) -> tuple[float, float]:
        try:
            region = catalogue.region(name)
        except ParameterError as error:
            if name in self.sample.regions:
                raise ParameterError(
                    f"{name!r} is in the pairs, but neither its coordinates nor its distance to the other region is "
                    "known; give distance_km"
                ) from error
            names = self.sample.regions
            listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            raise ParameterError(f"{error} Also allowed: the regions of the pairs: {listed}.") from error
        return region.latitude_deg, region.longitude_deg


def what_if(pairs: pd.DataFrame, from_region: str, to_region: str) -> Prediction:
    """
    Predict RTT and throughput of an ordered pair of regions, with prediction intervals.

    If `pairs` has measurements of the pair, in either direction, the prediction does not use them but reports them.
    """
    pairs = _checked(pairs)
    ends = (from_region, to_region)
    return replace(fit_predictor(pairs[~_between(pairs, ends)]), pairs=pairs).predict(*ends)


def fit_predictor(pairs: pd.DataFrame, *, level: float = 0.9) -> Predictor:
    """
    Fit RTT and throughput to a survey, to predict many pairs.

    For a pair with a region that has no measured pair, intervals at a level of 90 % are finite from 9 regions on.

    Raises ParameterError: there are fewer than 5 regions or 6 pairs with an RTT and a distance.
    """
    level = check_level(level)
    pairs = _checked(pairs)
    observed, sample = observe(pairs)
    return Predictor(level, prediction_fits.fit_both(observed), pairs, sample)


def observe(pairs: pd.DataFrame) -> tuple[prediction_fits.ObservedPairs, Sample]:
    """Convert pairs to arrays and a sample of RTTs; the arrays contain indices of regions in the sample's `regions`."""
    rtt = unordered(pairs, "rtt_ms")
    require_regions(rtt, prediction_fits.MIN_REGIONS, "a prediction")
    if rtt.n_pairs < prediction_fits.MIN_PAIRS:
        message = f"a prediction needs {prediction_fits.MIN_PAIRS} pairs with an RTT; there are {rtt.n_pairs}"
        raise ParameterError(message)
    if np.ptp(rtt.frame.distance_km) <= 0:
        raise ParameterError("a prediction needs pairs of different distance; all have the same")
    throughput, by_direction = None, {}
    if "throughput_bps" in pairs:
        throughput = unordered(pairs, "throughput_bps", combine="geometric mean")
        positive = pairs[pairs.throughput_bps.between(0, np.inf, inclusive="neither")]
        by_direction = positive.groupby(["from_region", "to_region"]).throughput_bps.median().to_dict()
    return prediction_fits.observed_pairs(rtt, throughput, by_direction), rtt


def _checked(pairs: pd.DataFrame) -> pd.DataFrame:
    throughput = ["throughput_bps"] if "throughput_bps" in getattr(pairs, "columns", ()) else []
    return check_pairs(pairs, "from_region", "to_region", "distance_km", "rtt_ms", *throughput)


def _between(pairs: pd.DataFrame, ends: tuple[str, str]) -> pd.Series:
    """Select the rows of a pair, in both directions."""
    return pairs.from_region.isin(ends) & pairs.to_region.isin(ends)
