"""
What if: RTT and throughput of a pair that was not measured, with prediction intervals.

RTT is a robust line over distance with a shrunken effect of each region (`effects`), and never below light in
fibre. Throughput is the window-limited model at the predicted RTT, or log-throughput over distance, with effects of
regions too; of the two, the one that errs less on left-out regions. Intervals are conformal (`conformal`), apart
for three situations: both regions have other measured pairs, one has, none has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from math import exp, inf, isfinite, nan

import numpy as np
import pandas as pd
from geopy.distance import geodesic

from ... import regions as places
from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, percent, quantity
from ..regions.check_pairs import check_pairs
from ..regions.unordered_pairs import Sample, require_regions, unordered
from ..result import Estimate, Result, html, table
from . import prediction_fits

FEW_PAIRS = 3
QUANTITIES = ("rtt_ms", "throughput_bps")
SITUATIONS = {
    "both": "both regions have other measured pairs",
    "one": "one of the regions has no measured pair",
    "none": "neither region has a measured pair",
}
CONFORMAL = (
    "jackknife+ over {} left out (Barber, Candès, Ramdas & Tibshirani 2021; pooled by unit: Dunn, Wasserman & "
    "Ramdas 2023)"
)
LEFT_OUT = {"both": "pairs", "one": "regions", "none": "both regions of a pair"}
ASSUMPTION = (
    "The pair resembles the measured ones: regions without measurements are drawn like those with, and the pairs "
    "not measured are not the odd ones. Hosts, tool and load are as in the measurements"
)


@dataclass(frozen=True, repr=False)
class Prediction(Result):
    """
    RTT and throughput of one ordered pair.

    Attributes
    ----------
    situation : str
        "both", "one" or "none": how many of the regions have other measured pairs.
    rtt, throughput : Estimate
        In ms and bit/s; the interval is for one measurement of this pair, not for a mean. `throughput` is None
        where fewer than 10 pairs have one. An end is infinite, or that of light, where there are too few regions.
    measured : dict
        What had been measured of this very pair: `rtt_ms`, `throughput_bps`.
    in_use : bool
        Whether the prediction rests on this very pair as well; never in `what_if`, which leaves it out.
    """

    from_region: str
    to_region: str
    situation: str
    distance_km: float
    light_rtt_ms: float
    rtt: Estimate
    throughput: Estimate | None
    measured: Mapping[str, float]
    pairs: pd.DataFrame
    in_use: bool = False

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.rtt,) if self.throughput is None else (self.rtt, self.throughput)

    def table(self) -> pd.DataFrame:
        """One row per quantity, with the pair, the situation, and what had been measured."""
        names = QUANTITIES[: len(self.estimates)]
        pair = {
            name: getattr(self, name) for name in ("from_region", "to_region", "situation", "distance_km")
        }
        front = pd.DataFrame([pair | {"measured": self.measured.get(name, nan)} for name in names])
        return pd.concat([front, table(self.estimates)], axis=1)

    DRAWN_BY = "predict_figure.prediction"

    def __str__(self) -> str:
        said = [str(each) for each in self.estimates]
        units = {"rtt_ms": "ms", "throughput_bps": "bit/s"}
        known = [quantity(self.measured[name], units[name]) for name in QUANTITIES if name in self.measured]
        if known:
            use = "among what this rests on" if self.in_use else "left out of this"
            said.append(f"Measured, and {use}, were {' and '.join(known)}.")
        return " ".join(said)

    def _repr_html_(self) -> str:
        title = f"{self.from_region} to {self.to_region}: predicted ({SITUATIONS[self.situation]})"
        known = str(self)[len(" ".join(map(str, self.estimates))) :].strip()
        return html(self.estimates, title) + (f"<p>{escape(known)}</p>" if known else "")


@dataclass(frozen=True)
class Predictor:
    """
    Both fits, ready to predict many pairs.

    Attributes
    ----------
    regions : tuple of str
        The regions with measured pairs.
    base : str
        What throughput rests on: "window", "distance", or "" without throughput.
    left_out : DataFrame
        Rows of the pairs that are not in use, with the reason.
    """

    regions: tuple[str, ...]
    base: str
    level: float
    core: prediction_fits.Core
    pairs: pd.DataFrame
    places: pd.DataFrame | None
    left_out: pd.DataFrame
    warnings: tuple[str, ...]

    def predict(self, from_region: str, to_region: str, *, distance_km: float | None = None) -> Prediction:
        """
        Predict one pair. One that was measured is predicted as if it were measured anew: `what_if` leaves it out.

        Parameters
        ----------
        from_region, to_region : str
            Regions of the pairs, of the table `regions` given when fitting, or of the catalogue.
        distance_km : float
            In place of what the pairs, the table or the catalogue say; needed for a region without a place.
        """
        ends = (from_region, to_region)
        if from_region == to_region:
            raise ParameterError(f"{from_region!r} to itself is no pair")
        distance = self._distance_km(ends, distance_km)
        index = {name: k for k, name in enumerate(self.regions)}
        known = [index.get(name, -1) for name in ends]
        situation = ("none", "one", "both")[sum(each >= 0 for each in known)]
        new = prediction_fits.New(np.array(known[:1]), np.array(known[1:]), np.array([distance]))
        notes = list(self.warnings)
        for name, each in zip(ends, known, strict=True):
            if each >= 0 and (n := int(self.core.rtt.observed.measured[each])) < FEW_PAIRS:
                notes.append(f"{name} has {count(n, 'measured pair')} only, fewer than those left out")
        light = float(places.light_rtt_ms(distance))
        rtt = self._estimate("rtt_ms", ends, situation, new, notes)
        rtt = replace(rtt, **{name: max(getattr(rtt, name), light) for name in ("estimate", "low", "high")})
        throughput = self._estimate("throughput_bps", ends, situation, new, notes) if self.base else None
        measured, in_use = self._measured(ends), self._in_use(known)
        return Prediction(*ends, situation, distance, light, rtt, throughput, measured, self.pairs, in_use)

    def _estimate(
        self, name: str, ends, situation: str, new: prediction_fits.New, notes: list[str]
    ) -> Estimate:
        found = self.core.predict(name, situation, new, self.level)
        model = self.core.rtt if name == "rtt_ms" else self.core.throughput
        value, low, high = (float(each[0]) for each in (found.value, found.low, found.high))
        fit = "robust line over distance with shrunken effects of regions"
        if name == "throughput_bps":
            value, low, high = (_exp(each) for each in (value, low, high))
            base = (
                "window-limited model at the predicted RTT"
                if self.base == "window"
                else "log10 over distance"
            )
            fit = f"{base}, with shrunken effects of regions"
        if not (isfinite(low) and isfinite(high)):
            least = int(np.ceil(self.level / (1 - self.level) - 1e-9))
            unit = "pairs" if situation == "both" else "regions"
            notes = [
                *notes,
                f"open interval: {percent(self.level)} takes {least} {unit}, here are {found.n_units}",
            ]
        what = "RTT" if name == "rtt_ms" else "throughput"
        measured = model.observed.measured
        return Estimate(
            quantity=f"predicted {what}",
            claim=f"The {what} from {ends[0]} to {ends[1]} is predicted as {{}}, where {SITUATIONS[situation]}",
            estimate=value,
            low=low,
            high=high,
            unit="ms" if name == "rtt_ms" else "bit/s",
            n=len(model.observed),
            n_regions=int((measured > 0).sum()),
            method=f"{fit}; prediction interval by {CONFORMAL.format(LEFT_OUT[situation])}",
            assumption=ASSUMPTION,
            level=self.level,
            warnings=tuple(notes),
        )

    def _in_use(self, known: list[int]) -> bool:
        observed = self.core.rtt.observed
        ends = np.sort(np.column_stack([observed.first, observed.second]), axis=1)
        return bool((ends == np.sort(known)).all(axis=1).any())

    def _measured(self, ends) -> dict[str, float]:
        here = self.pairs[(self.pairs.from_region == ends[0]) & (self.pairs.to_region == ends[1])]
        names = [name for name in QUANTITIES if name in here]
        return {name: float(here[name].median()) for name in names if here[name].notna().any()}

    def _distance_km(self, ends: tuple[str, str], given: float | None) -> float:
        if given is not None:
            if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given < inf:
                raise ParameterError(f"distance_km={given!r}: it must be finite and 0 or more")
            return float(given)
        frame = self.pairs
        same = (frame.from_region.isin(ends)) & (frame.to_region.isin(ends)) & frame.distance_km.notna()
        if same.any():
            return float(frame.distance_km[same].median())
        first, second = (self._place(name) for name in ends)
        return float(geodesic(first, second, ellipsoid="WGS-84").km)

    def _place(self, name: str) -> tuple[float, float]:
        if self.places is not None:
            row = self.places[self.places["name"] == name]
            if len(row):
                return float(row.latitude_deg.iloc[0]), float(row.longitude_deg.iloc[0])
        try:
            region = places.region(name)
        except ParameterError as error:
            if name in self.regions:
                raise ParameterError(
                    f"{name!r} is in the pairs, but neither its coordinates nor its distance to the other region is "
                    "known; give distance_km, or a table regions with latitude_deg and longitude_deg"
                ) from error
            listed = ", ".join(self.regions[:12]) + (", ..." if len(self.regions) > 12 else "")
            raise ParameterError(f"{error} Or a region of the pairs: {listed}") from error
        return region.latitude_deg, region.longitude_deg


def what_if(
    pairs: pd.DataFrame,
    from_region: str,
    to_region: str,
    *,
    level: float = 0.9,
    regions: pd.DataFrame | None = None,
    distance_km: float | None = None,
    rtt_column: str = "rtt_ms",
    throughput_column: str = "throughput_bps",
) -> Prediction:
    """
    RTT and the throughput range of a pair that was not measured.

    If it was measured, its own rows (both directions) are left out, and shown beside the prediction.

    Parameters
    ----------
    pairs : DataFrame
        Table `pairs`, measured or imported.
    from_region, to_region : str
        Regions of the pairs, of `regions` or of the catalogue.
    level : float
        Of the prediction intervals. 90 % takes 9 regions for a pair of which a region was not measured.
    regions : DataFrame
        Table `regions` with coordinates that come before the catalogue's.
    distance_km : float
        In place of the distance that the pairs or the coordinates say.

    Examples
    --------
    >>> from wanbench.stats.regions import simulated_surveys
    >>> pairs = simulated_surveys.survey(16, seed=1)
    >>> one, other = pairs.from_region[0], pairs.to_region[0]
    >>> found = what_if(pairs, one, other)
    >>> found.situation, bool(found.rtt.low <= found.measured["rtt_ms"] <= found.rtt.high)
    ('both', True)
    """
    pairs = _checked(pairs, rtt_column, throughput_column)
    ends = (from_region, to_region)
    own = pairs.from_region.isin(ends) & pairs.to_region.isin(ends)
    settings = {
        "level": level,
        "regions": regions,
        "rtt_column": rtt_column,
        "throughput_column": throughput_column,
    }
    found = fit_predictor(pairs[~own], **settings)
    whole = _renamed(pairs, rtt_column, throughput_column)
    return replace(found, pairs=whole).predict(*ends, distance_km=distance_km)


def fit_predictor(
    pairs: pd.DataFrame,
    *,
    level: float = 0.9,
    regions: pd.DataFrame | None = None,
    rtt_column: str = "rtt_ms",
    throughput_column: str = "throughput_bps",
) -> Predictor:
    """
    Fit once, predict many pairs; parameters as in `what_if`.

    Raises
    ------
    ParameterError
        With fewer than 5 regions or 6 pairs that have an RTT and a distance.
    """
    level = check_level(level)
    pairs = _checked(pairs, rtt_column, throughput_column)
    _check_places(regions)
    observed, names, sample = observe(pairs, rtt_column, throughput_column)
    core = prediction_fits.core(observed)
    frame = _renamed(pairs, rtt_column, throughput_column)
    return Predictor(tuple(names), core.base, level, core, frame, regions, sample.left_out, sample.warnings())


def observe(pairs: pd.DataFrame, rtt_column: str, throughput_column: str) -> tuple:
    """The pairs as arrays, the names of their regions, and the sample of RTTs."""
    rtt = unordered(pairs, rtt_column)
    require_regions(rtt, prediction_fits.FEWEST_REGIONS, "a prediction")
    if rtt.n_pairs < prediction_fits.FEWEST_PAIRS:
        raise ParameterError(
            f"a prediction needs {prediction_fits.FEWEST_PAIRS} pairs with an RTT; there are {rtt.n_pairs}"
        )
    if np.ptp(rtt.frame.distance_km) <= 0:
        raise ParameterError("a prediction needs pairs of different distance; all have the same")
    throughput: Sample | None = None
    directed: dict = {}
    if throughput_column in pairs:
        throughput = unordered(pairs, throughput_column, combine="geometric mean")
        good = pairs[pairs[throughput_column] > 0]
        directed = good.groupby(["from_region", "to_region"])[throughput_column].median().to_dict()
    names = rtt.regions
    return prediction_fits.observed_pairs(rtt, throughput, directed, names), names, rtt


def _checked(pairs: pd.DataFrame, rtt_column: str, throughput_column: str) -> pd.DataFrame:
    """The pairs, with what is used in them checked."""
    known = [throughput_column] if throughput_column in getattr(pairs, "columns", ()) else []
    return check_pairs(pairs, "from_region", "to_region", "distance_km", rtt_column, *known)


def _check_places(regions: pd.DataFrame | None) -> None:
    if regions is None:
        return
    missing = [name for name in ("name", "latitude_deg", "longitude_deg") if name not in regions.columns]
    if missing:
        raise ParameterError(f"the table regions lacks {', '.join(missing)}")


def _renamed(pairs: pd.DataFrame, rtt_column: str, throughput_column: str) -> pd.DataFrame:
    """The columns in use, under their usual names."""
    names = {rtt_column: "rtt_ms", throughput_column: "throughput_bps"}
    kept = ["from_region", "to_region", "distance_km", *(name for name in names if name in pairs)]
    return pairs[kept].rename(columns=names).reset_index(drop=True)


def _exp(logarithm: float) -> float:
    return exp(min(logarithm, 700.0)) if logarithm < inf else inf
