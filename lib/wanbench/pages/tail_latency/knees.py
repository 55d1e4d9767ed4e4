"""The knee of each system, against the rate that its links allow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite

import pandas as pd

from wanbench.errors import MissingDataError, ParameterError
from wanbench.formatting import number, quantity
from wanbench.methods.result import Estimate, Result

from .allowed import Allowed
from .knee_rate import Knee, knee_of
from .step_curves import StepCurve, step_curve
from .trials import RATE, SystemTrials


@dataclass(frozen=True, repr=False)
class Knees(Result):
    """
    The knee of each system.

    Attributes
    ----------
    knees : dict of str to Knee
        By system, from `stats.tails.knee`: up to the first step at which the system never kept up.
    curves : dict of str to StepCurve
        By system, all steps.
    links : dict of str to Estimate
        The rate that the links allow each system, if links were sampled.
    """

    knees: dict[str, Knee]
    curves: dict[str, StepCurve]
    links: dict[str, Estimate]

    TITLE = "The knee of each system"
    DRAWN_BY = "knees_figure.knees"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The knee of each system."""
        return tuple(one.knee for one in self.knees.values())

    @property
    def sentence(self) -> str:
        """The knee of each system, and the rate that its links allow; the table has more."""
        parts = []
        for name, one in self.knees.items():
            links = f" The links allow it {self.links[name].formatted}." if name in self.links else ""
            rises = one.knee.sentence if isfinite(one.knee.estimate) else one.sentence
            parts.append(f"{name}: {rises}{links}")
        return " ".join(parts)

    @property
    def cautions(self) -> tuple[str, ...]:
        """The cautions of each knee, with the system's name."""
        return tuple(f"{name}: {text}" for name, one in self.knees.items() for text in one.knee.warnings)

    def formatted_table(self) -> pd.DataFrame:
        """One row per system."""
        rows = []
        for name, one in self.knees.items():
            row = {
                "system": name,
                "knee": one.knee.formatted if isfinite(one.knee.estimate) else one.where,
                f"{one.knee.formatted_level} interval": one.knee.formatted_interval,
                "a second run's": one.second_run.formatted_interval,
                "by Kneedle": quantity(one.kneedle, "records/s") if isfinite(one.kneedle) else "",
                "level before it": quantity(one.level_ms, "ms") if isfinite(one.level_ms) else "",
            }
            links = self.links.get(name)
            row["links allow"] = "" if links is None else links.formatted
            rows.append(row)
        return pd.DataFrame(rows)


def knees(trials: SystemTrials, links: Allowed | None = None, *, q: float = 0.99, level: float = 0.95, **at) -> Knees:
    """
    The knee of each system in its trials at stepped rates.

    Steps above the first at which a system never kept up are left out: there the quantile only shows how long a trial
    and its wait for answers are. Such a step bends the fitted line, and so moves the knee. So are steps from the first
    with a lost quantile on. If too few remain, the knee is not known.

    Parameters
    ----------
    links : Allowed, optional
        The rate that the links allow each system, for comparison; the knee does not depend on it.
    at
        Fixed values of other settings: partitions=...

    Raises
    ------
    MissingDataError
        If a system has too few steps or blocks.
    """
    found, curves = {}, {}
    for name in trials.systems:
        rows = trials.stepped(name, **at)
        try:
            curves[name] = step_curve(rows, q)
            found[name] = knee_of(_until_full(curves[name], rows), level=level)
        except ParameterError as error:
            raise MissingDataError(f"no knee of {name}: {error}") from error
    return Knees(found, curves, {} if links is None else links.rates)


def _until_full(curve: StepCurve, rows: pd.DataFrame) -> StepCurve:
    """The curve up to the first step at which the system never kept up."""
    kept_up = rows.groupby(RATE).kept_up.any()
    above = [rate for rate in curve.rates if not kept_up[kept_up.index < rate].all()]
    if not above or (curve.lost and curve.lost[0] <= above[0]):
        return curve  # steps with a lost quantile are left out in any case
    note = f"steps from {number(above[0], 0)} records/s on are left out: at a lower one the system never keeps up"
    return replace(curve.below(above[0]), notes=(*curve.notes, note))
