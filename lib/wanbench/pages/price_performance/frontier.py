"""Cost against latency: which settings are significantly worse in both than another."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.formatting import percent
from wanbench.methods.result import Estimate, RowsResult

from .comparisons import Comparisons, compare_all
from .costs import COST, SizeCosts

P99 = "p99_ms"
DOMINATED, NOT_SHOWN, FIRST = "dominated", "not shown to be dominated", "on the frontier of the means"


@dataclass(frozen=True, repr=False)
class Frontier(RowsResult):
    """
    The frontier of cost against p99.

    Attributes
    ----------
    costs, latencies : Comparisons
    rows : DataFrame
        Per setting: cost and p99 with intervals; `verdict`: "dominated" if another is significantly cheaper and faster,
        "on the frontier of the means" if no other has a lower mean in both, else "not shown to be dominated"; `by`: the
        settings that dominate it.
    """

    costs: Comparisons
    latencies: Comparisons

    TITLE = "Cost against p99"
    DRAWN_BY = "frontier_figure.frontier"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The p99 of each setting."""
        return tuple(self.latencies.means.values())

    @property
    def sentence(self) -> str:
        """The settings by verdict."""
        parts = [f"{verdict}: {', '.join(part.setting)}" for verdict, part in self.rows.groupby("verdict", sort=True)]
        return (
            f"Cost per message against p99: {'; '.join(parts)}. Dominated means that another is shown to be both "
            f"cheaper and faster ({percent(self.costs.level)} intervals, all pairs together, for each of the two)."
        )

    def formatted_table(self) -> pd.DataFrame:
        """One row per setting: cost and p99 with their intervals, as the cost table writes them, and the verdict."""
        rows = []
        for row in self.rows.itertuples():
            cost, p99 = self.costs.means[row.setting], self.latencies.means[row.setting]
            rows.append(
                {
                    "setting": row.setting,
                    "USD per billion": cost.formatted.removesuffix(" USD"),
                    "USD per billion, interval": cost.formatted_interval,
                    "p99": p99.formatted,
                    "p99, interval": p99.formatted_interval,
                    "verdict": f"{row.verdict} by {row.by}" if row.by else row.verdict,
                }
            )
        return pd.DataFrame(rows)


def frontier(costs: SizeCosts, *, level: float = 0.95) -> Frontier:
    """
    Cost per billion messages against the p99 from send to acknowledgement.

    ParameterError if fewer than two settings have a p99: a killed tool prints none.
    """
    latencies = compare_all(costs.trials, P99, "ms", level=level, claim="With {name} the p99 is {{}}")
    both, rows = [name for name in costs.costs.settings if name in latencies.means], []
    for name in both:
        others = [other for other in both if other != name]
        by = [o for o in others if costs.costs.shown_lower(o, name) and latencies.shown_lower(o, name)]
        cost, p99 = costs.costs.means[name], latencies.means[name]
        below = any(
            costs.costs.means[o].estimate <= cost.estimate and latencies.means[o].estimate <= p99.estimate
            for o in others
        )
        rows.append(
            {
                "setting": name,
                COST: cost.estimate,
                f"{COST}_low": cost.low,
                f"{COST}_high": cost.high,
                P99: p99.estimate,
                "p99_ms_low": p99.low,
                "p99_ms_high": p99.high,
                "verdict": DOMINATED if by else NOT_SHOWN if below else FIRST,
                "by": ", ".join(by),
            }
        )
    return Frontier(pd.DataFrame(rows), costs.costs, latencies)
