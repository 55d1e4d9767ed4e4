"""A fitted factorial experiment, and what it says of the thesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

from ...findings import Finding
from ...formatting import count, number, percent
from ..result import Estimate, Result, html, table
from .gain_map import METHOD, regions
from .terms import UNITS

PATH = ("jitter_ms", "loss")


@dataclass(frozen=True, repr=False)
class Factorial(Result):
    """
    The fitted experiment.

    Attributes
    ----------
    elasticities : dict
        Factor to Estimate: the elasticity of the response, on average between the factor's levels and those of the
        others.
    interactions : dict
        (factor, factor, ...) to Estimate: what the elasticity of one changes by per e-fold of the other, or from one
        level of a contrast to the other.
    doublings : dict
        Factor to Estimate: what doubling it multiplies the response by, on the same average.
    effects : dict
        Two-level factor to Estimate: what its high level multiplies the response by, against its low one.
    thesis : Estimate
        What halving `delay` multiplies the response by over what doubling `rate` does (above 1: delay matters more), on
        the same average.
    places : DataFrame
        Per combination of levels that was measured: the factors, elasticity of delay and of rate, `gain` (what halving
        the delay multiplies the response by, over what doubling the rate does) with `low`, `high`, and `verdict`:
        "holds", "fails" or "undecided". The intervals hold for all places and all of `space` together.
    space : DataFrame
        The same on a grid: steps along delay and rate, at each combination of the other factors' levels, measured or
        not.
    aliases : DataFrame
        Per effect, what else its estimate stands for (`alias_table`).
    lack_of_fit_p : float
        p-value of the test that the model fits (`lack_of_fit.lack_of_fit`): against replicates, or without these
        against a bend; NaN where too few runs are left to test with.
    runs : DataFrame
        One row per run: the factors, `response` (mean of the run), `fitted`, `residual` (of the natural logarithm).
    """

    elasticities: dict[str, Estimate]
    interactions: dict[tuple[str, ...], Estimate]
    doublings: dict[str, Estimate]
    effects: dict[str, Estimate]
    thesis: Estimate | None
    places: pd.DataFrame
    space: pd.DataFrame
    aliases: pd.DataFrame
    response: str
    delay: str
    rate: str
    lack_of_fit_p: float
    r_squared: float
    runs: pd.DataFrame
    left_out: pd.DataFrame

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        whole = (
            *self.doublings.values(),
            *self.effects.values(),
            *self.elasticities.values(),
            *self.interactions.values(),
        )
        return whole if self.thesis is None else (self.thesis, *whole)

    @property
    def factors(self) -> list[str]:
        """The factors, in their order."""
        return [name for name in self.runs.columns if name in self.doublings or name in self.effects]

    @property
    def others(self) -> list[str]:
        """The factors but delay and rate."""
        return [name for name in self.factors if name not in (self.delay, self.rate)]

    def table(self) -> pd.DataFrame:
        """One row per number."""
        return table(self.estimates)

    def alias_table(self) -> pd.DataFrame:
        """The effects whose estimate stands for others too; no rows where each stands alone."""
        alone = (self.aliases.aliased_with == "") & (self.aliases.mixed_with == "")
        return self.aliases[~alone].reset_index(drop=True)

    def where_it_fails(self) -> pd.DataFrame:
        """The places where doubling the rate gains more than halving the delay, interval and all."""
        return self.places[self.places.verdict == "fails"].reset_index(drop=True)

    def regions(self, by: Sequence[str] | None = None) -> pd.DataFrame:
        """
        Where the thesis holds and fails: per combination of the factors in `by` the share of the space between the
        levels (equal in logarithms) with each verdict, the least and greatest gain, and the span within which it fails.

        `by` is by default all factors but delay and rate, jitter_ms and loss.
        """
        by = [name for name in self.others if name not in PATH] if by is None else list(by)
        return regions(self.space, by, self.delay, self.rate, UNITS)

    def bends(self) -> pd.DataFrame:
        """
        Where the model misses: per combination of levels `n_runs`, `measured`, `fitted` (geometric means) and `off`,
        the one over the other; the worst first.
        """
        logs = self.runs.assign(
            _measured=np.log(self.runs.response), _fitted=np.log(self.runs.fitted), n_runs=1
        )
        groups = logs.groupby(self.factors)
        found = np.exp(groups[["_measured", "_fitted"]].mean()).rename(columns=lambda name: name.strip("_"))
        found = found.assign(n_runs=groups.n_runs.sum(), off=found.measured / found.fitted).reset_index()
        worst = np.log(found.off).abs().sort_values(ascending=False).index
        return found.loc[worst].reset_index(drop=True)

    DRAWN_BY = "effects_figure.elasticities"

    def map(self, *, note: str = "", **levels):
        """
        Halved delay over doubled rate as a map over delay and rate, a panel per combination of the other factors.

        `levels` picks levels, such as `loss=0.0`; a factor of more than two that is not picked is at its lowest.
        """
        return self.drawn_by("gain_map_figure.thesis_map", levels, note=note)

    def verdict(self) -> str:
        """Where the thesis holds and where not, in a sentence."""
        if self.thesis is None:
            return ""
        counts = self.places.verdict.value_counts()
        parts = [
            f"{word} in {int(counts[word])}" for word in ("holds", "fails", "undecided") if word in counts
        ]
        said = ", ".join(parts).replace("undecided in", "is undecided in")
        total = count(len(self.places), "combination")
        return (
            f"That {self.delay} matters more than {self.rate} (halving one against doubling the other) {said} of "
            f"{total} of levels ({percent(self.thesis.level)} for all together)."
        )

    def region_sentence(self) -> str:
        """In which part of the space the thesis fails, in a sentence."""
        if self.thesis is None:
            return ""
        share = self.space.verdict.value_counts(normalize=True)
        parts = [
            f"{number(100 * float(share.get(word, 0.0)), 0)} %" for word in ("holds", "fails", "undecided")
        ]
        said = f"It holds in {parts[0]} of the space between the levels, fails in {parts[1]}, and {parts[2]} is open"
        found = self.regions()
        failing = found[found.fails > 0].sort_values("fails", ascending=False)
        by = [name for name in self.others if name in found]
        where = [
            f"{' '.join(f'{name} {_level(getattr(row, name))}' for name in by) or 'anywhere'} "
            + (f"({number(100 * row.fails, 0)} %: {row.fails_where})" if row.fails < 1 else "(throughout)")
            for row in failing.itertuples()
        ]
        listed = "; ".join(where[:4]) + (f"; and {len(where) - 4} more" if len(where) > 4 else "")
        return f"{said}. It fails with {listed}." if where else f"{said}."

    def place_cautions(self) -> tuple[str, ...]:
        """What must be said of the places where the thesis holds and fails."""
        if self.thesis is None:
            return ()
        two = [name for name in (self.delay, self.rate) if self.runs[name].nunique() == 2]
        line = (
            f"two levels of {' and of '.join(two)} show a straight line between them, so where a limit is met on the "
            "way, gains are averages over the way"
        )
        return (*self.thesis.warnings, *([line] if two else []))

    def finding(self, name: str, page: str = "") -> Finding:
        """The finding where the thesis holds and fails; its number is the part of the space where it holds."""
        share = self.space.verdict.value_counts(normalize=True)
        cautions = [f"Caution: {each}." for each in self.place_cautions()]
        return Finding(
            name=name,
            sentence=" ".join([self.verdict(), self.region_sentence(), *cautions]).strip(),
            estimate=float(share.get("holds", 0.0)),
            low=None,
            high=None,
            unit="fraction",
            n=len(self.runs),
            n_regions=None,
            method=METHOD,
            assumption=self.thesis.assumption if self.thesis else "",
            page=page,
        )

    def __str__(self) -> str:
        said = [each.sentence for each in (*self.doublings.values(), *self.effects.values())]
        notes = [f"Caution: {each}." for each in self.place_cautions() or self.estimates[0].warnings]
        return " ".join([*said, self.verdict(), *notes]).strip()

    def _repr_html_(self) -> str:
        shown = html(self.estimates, f"log {self.response} on log factors")
        if self.thesis is None:
            return shown
        said = f"<p>{escape(self.verdict())} {escape(self.region_sentence())}</p>"
        notes = self.place_cautions()[len(self.thesis.warnings) :]
        cautions = "".join(f"<p>Caution: {escape(each)}.</p>" for each in notes)
        return f"{shown}{said}{cautions}<p>{escape(f'Places: {METHOD}.')}</p>"


def _level(value) -> str:
    return f"{value:g}" if isinstance(value, (int, float, np.number)) else str(value)
