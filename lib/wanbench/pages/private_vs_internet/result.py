"""A fitted factorial experiment, and its verdict on the thesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from wanbench.findings import Finding
from wanbench.formatting import count, number, percent
from wanbench.methods.factorial.gain_map import METHOD, VERDICTS, verdict_shares
from wanbench.methods.factorial.terms import level_label, word
from wanbench.methods.result import Estimate, Result

PATH = ("jitter_ms", "loss")
"""Path factors that are always best small: maps show their lowest level, shares average over them."""
MAX_LISTED = 4
"""More combinations than this make a sentence unreadable."""


@dataclass(frozen=True, repr=False)
class Factorial(Result):
    """
    The fitted experiment.

    Attributes
    ----------
    elasticities : dict
        Factor to Estimate: the elasticity of the response, averaged over the levels of this and the other factors.
    interactions : dict
        (factor, factor, ...) to Estimate: the change in the elasticity of one factor per e-fold of the other, or
        between the levels of a contrast.
    doublings : dict
        Factor to Estimate: the ratio of the response when the factor is doubled, on the same average.
    effects : dict
        Two-level factor to Estimate: the ratio of the response at its high level to that at its low one.
    thesis : Estimate
        The gain from halving `delay` over the gain from doubling `rate` (above 1: delay matters more), on the same
        average. A gain is the ratio of the response after to before.
    combinations : DataFrame
        Per combination of levels that was measured: the factors, elasticity of delay and of rate, `gain` (from halving
        the delay over that from doubling the rate) with `low`, `high`, and `verdict`: "holds", "fails" or "undecided".
        The intervals are simultaneous over all combinations and all of `grid`.
    grid : DataFrame
        The same on a grid: steps along delay and rate, at each combination of the other factors' levels, measured or
        not.
    aliases : DataFrame
        Per effect, the effects that it is confounded with (`alias_table`).
    lack_of_fit_p : float
        p-value of the test that the model fits (`lack_of_fit.lack_of_fit`): against replicates, or without replicates
        against curvature; NaN if too few runs are left for a test.
    runs : DataFrame
        One row per run: the factors, `response`, `block`, `fitted`, `residual` (of the natural logarithm).
    """

    elasticities: dict[str, Estimate]
    interactions: dict[tuple[str, ...], Estimate]
    doublings: dict[str, Estimate]
    effects: dict[str, Estimate]
    thesis: Estimate | None
    combinations: pd.DataFrame
    grid: pd.DataFrame
    aliases: pd.DataFrame
    response: str
    delay: str
    rate: str
    lack_of_fit_p: float
    r_squared: float
    runs: pd.DataFrame
    left_out: pd.DataFrame

    TITLE = "Logarithm of the response on the factors"
    DRAWN_BY = "effects_figure.elasticities"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        groups = (self.doublings, self.effects, self.elasticities, self.interactions)
        estimates = tuple(estimate for group in groups for estimate in group.values())
        return estimates if self.thesis is None else (self.thesis, *estimates)

    @property
    def factors(self) -> list[str]:
        """The factors, in their order."""
        return [name for name in self.runs.columns if name in self.doublings or name in self.effects]

    @property
    def others(self) -> list[str]:
        """All factors except delay and rate."""
        return [name for name in self.factors if name not in (self.delay, self.rate)]

    @property
    def sentence(self) -> str:
        effects = [estimate.sentence for estimate in (*self.doublings.values(), *self.effects.values())]
        return " ".join([*effects, self.verdict(), self.shares_sentence(), self.failing_sentence()]).strip()

    @property
    def cautions(self) -> tuple[str, ...]:
        two = [name for name in (self.delay, self.rate) if name in self.runs and self.runs[name].nunique() == 2]
        if self.thesis is None or not two:
            return super().cautions
        line = (
            f"two levels of {' and of '.join(map(word, two))} cannot show curvature, so if a limit lies "
            "between them, gains are averages"
        )
        return (*super().cautions, line)

    def alias_table(self) -> pd.DataFrame:
        """The confounded effects; no rows if there are none."""
        alone = (self.aliases.aliased_with == "") & (self.aliases.mixed_with == "")
        return self.aliases[~alone].reset_index(drop=True)

    def verdict_shares(self, by: Sequence[str] | None = None) -> pd.DataFrame:
        """
        Per combination of the factors in `by`: the share of the space (log-spaced) with each verdict, the smallest and
        largest gain, and the span in which the thesis fails.

        `by` is by default all factors but delay and rate, jitter_ms and loss.
        """
        by = [name for name in self.others if name not in PATH] if by is None else list(by)
        return verdict_shares(self.grid, by, self.delay, self.rate)

    def map(self, *, note: str = "", **levels):
        """
        A map over delay and rate of the gain of halved delay over doubled rate, one panel per combination of the
        others.

        `levels` selects levels, such as `loss=0.0`. By default jitter_ms and loss are at their lowest level, and the
        others at all their levels.
        """
        return self.drawn_by("gain_map_figure.gain_map", levels, note=note)

    def verdict(self) -> str:
        """Where the thesis holds and where it fails, in a sentence; "" without a thesis."""
        if self.thesis is None:
            return ""
        counts = self.combinations.verdict.value_counts()
        holds, fails, undecided = (int(counts.get(name, 0)) for name in VERDICTS)
        total = count(len(self.combinations), "combination")
        if not holds and not fails:
            return (
                f"Whether halving {word(self.delay)} gains more than doubling {word(self.rate)} is undecided in all "
                f"{total} of levels ({percent(self.thesis.level)} for all together)."
            )
        return (
            f"Halving {word(self.delay)} gains more than doubling {word(self.rate)} in {holds} of {total} of levels, "
            f"less in {fails}; {undecided} are undecided ({percent(self.thesis.level)} for all together)."
        )

    def shares_sentence(self) -> str:
        """The shares of the factor space with each verdict, in a sentence; "" without a thesis."""
        if self.thesis is None:
            return ""
        holds, fails, undecided = (_percent((self.grid.verdict == name).mean()) for name in VERDICTS)
        return f"Of the space between the levels it is more in {holds}, less in {fails}, undecided in {undecided}."

    def failing_sentence(self) -> str:
        """Where in the factor space the thesis fails, in a sentence; "" without a thesis, or if nowhere."""
        if self.thesis is None:
            return ""
        shares = self.verdict_shares()
        failing = shares[shares.fails > 0].sort_values("fails", ascending=False)
        by = [name for name in self.others if name in shares]
        where = [
            (", ".join(f"{word(name)} {level_label(name, getattr(row, name))}" for name in by) or "any levels")
            + (f" (in {_percent(row.fails)}: {row.fails_where})" if row.fails < 1 else " (throughout)")
            for row in failing.itertuples()
        ]
        more = f"; and {len(where) - MAX_LISTED} more" if len(where) > MAX_LISTED else ""
        return f"It is less with {'; '.join(where[:MAX_LISTED])}{more}." if where else ""

    def finding(self, name: str, page: str = "") -> Finding:
        """The finding on the thesis; its number is the share of the space where it holds."""
        return Finding(
            name=name,
            sentence=" ".join([self.verdict(), self.shares_sentence()]).strip(),
            cautions=self.cautions,
            estimate=float((self.grid.verdict == "holds").mean()),
            low=None,
            high=None,
            unit="fraction",
            n=len(self.runs),
            n_regions=None,
            method=METHOD,
            assumption=self.estimates[0].assumption,
            page=page,
        )


def _percent(share: float) -> str:
    return f"{number(100 * share, 0)} %"
