"""Cost per billion messages by setting, ranked with ties, and the price at which settings tie."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count, number, percent
from wanbench.methods.result import Estimate, Result

from .comparisons import Comparisons, compare_all
from .trials import SizeTrials

RATE, COST = "messages_per_s", "usd_per_billion"


@dataclass(frozen=True, repr=False)
class SizeCosts(Result):
    """
    Cost per billion messages.

    Attributes
    ----------
    measured : SizeTrials
    rates, costs : Comparisons
        Messages per second; USD per billion messages.
    """

    measured: SizeTrials
    rates: Comparisons
    costs: Comparisons

    TITLE = "Cost per billion messages"
    DRAWN_BY = "costs_figure.costs"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Cost of a billion messages, the cheapest setting first; then messages per second in the same order."""
        names = self.costs.settings
        return tuple(each.means[name] for each in (self.costs, self.rates) for name in names)

    @property
    def sentence(self) -> str:
        """The settings in order of their means, and which of them may be the cheapest."""
        costs, names = self.costs, self.costs.settings
        listed = ", ".join(f"{name} {costs.means[name].formatted}" for name in names)
        leaders = [name for name in names if costs.rank(name)[0] == 1]
        lead = (
            f"{leaders[0]} is shown to be the cheapest"
            if len(leaders) == 1
            else f"the cheapest is one of {', '.join(leaders)}: these tie"
        )
        return (
            f"Cost of a billion messages: {listed}; {lead} ({percent(costs.level)} intervals of all "
            f"{count(len(costs.ratios) // 2, 'ratio')} together; {count(len(self.trials), 'trial')})."
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        """Failures are among them: a setting that fails costs more than its successful trials show."""
        lost = ", ".join(f"{name} {n:,}" for name, n in self.failed.items())
        return (
            *super().cautions,
            *self.measured.cautions,
            *([f"failed trials are not included in any cost ({lost})"] if lost else []),
        )

    @property
    def trials(self) -> pd.DataFrame:
        """The trials of `measured`."""
        return self.measured.trials

    @property
    def failed(self) -> pd.Series:
        """The number of failed attempts by setting."""
        return self.measured.failed.setting.value_counts()

    @property
    def lead(self) -> Estimate:
        """The cost of the second cheapest setting over that of the cheapest."""
        first, second = self.costs.settings[:2]
        return self.costs.ratios[second, first]

    def price_that_ties(self, setting: str, other: str) -> Estimate:
        """The price of a setting, in USD per hour, at which a billion messages would cost as much as with the other."""
        now = float(self.trials.usd_per_hour[self.trials.setting == setting].iloc[0])
        return self.ratio(other, setting).transformed(
            lambda ratio: now * ratio,
            quantity=f"price at which {setting} ties with {other}",
            claim=f"{setting} would cost as much per message as {other} at {{}} (it has {now:g})",
            unit="USD/hour",
        )

    def ratio(self, setting: str, other: str, of: str = COST) -> Estimate:
        """
        Cost of a setting (with of="messages_per_s": its rate) over that of another; MissingDataError if one is missing.
        """
        each = self.costs if of == COST else self.rates
        if (setting, other) not in each.ratios:
            raise MissingDataError(f"no trials of {setting} and {other}; there are {', '.join(each.settings)}.")
        return each.ratios[setting, other]

    def table(self) -> pd.DataFrame:
        """Per setting: price, rate, cost, with intervals; rank and ties."""
        rows = []
        for name in self.costs.settings:
            rate, cost = self.rates.means[name], self.costs.means[name]
            best, worst = self.costs.rank(name)
            rows.append(
                {
                    "setting": name,
                    "trials": cost.n,
                    "failed": int(self.failed.get(name, 0)),
                    "usd_per_hour": float(self.trials.usd_per_hour[self.trials.setting == name].iloc[0]),
                    "messages_per_s": rate.estimate,
                    "messages_per_s_low": rate.low,
                    "messages_per_s_high": rate.high,
                    "usd_per_billion": cost.estimate,
                    "usd_per_billion_low": cost.low,
                    "usd_per_billion_high": cost.high,
                    "rank": f"{best}" if best == worst else f"{best} to {worst}",
                    "ties": ", ".join(self.costs.ties(name)),
                }
            )
        return pd.DataFrame(rows)

    def formatted_table(self) -> pd.DataFrame:
        """The table as text."""
        rows = []
        for row in self.table().itertuples():
            rate, cost = self.rates.means[row.setting], self.costs.means[row.setting]
            rows.append(
                {
                    "setting": row.setting,
                    "trials": f"{row.trials:,}" + (f" ({row.failed:,} failed)" if row.failed else ""),
                    "USD per hour": number(row.usd_per_hour),
                    "messages/s": rate.formatted.removesuffix(" messages/s"),
                    "messages/s, interval": rate.formatted_interval,
                    "USD per billion": cost.formatted.removesuffix(" USD"),
                    "USD per billion, interval": cost.formatted_interval,
                    "rank": row.rank,
                    "tied with": row.ties,
                }
            )
        return pd.DataFrame(rows)


def cost_per_billion(trials: SizeTrials, *, level: float = 0.95) -> SizeCosts:
    """
    Cost of a billion messages with each setting: price per hour over messages per hour.

    Two settings tie unless the interval of their cost ratio excludes 1; intervals are simultaneous over all pairs. A
    tie does not prove equality: the interval shows how much the settings may differ.
    """
    rates = compare_all(trials.trials, RATE, "messages/s", level=level, claim="With {name} the brokers take {{}}")
    costs = compare_all(trials.trials, COST, "USD", level=level, claim="With {name} a billion messages cost {{}}")
    return SizeCosts(trials, rates, costs)
