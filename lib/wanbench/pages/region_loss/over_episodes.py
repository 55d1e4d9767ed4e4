"""Times per episode, and their medians per setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from wanbench.formatting import percent
from wanbench.methods.result import RowsResult
from wanbench.methods.result.means import Median, median_of


@dataclass(frozen=True, repr=False)
class OverEpisodes(RowsResult):
    """
    Times in seconds, one row per episode. A subclass names its columns in QUANTITIES and gives the sentence.

    Attributes
    ----------
    rows : DataFrame
        run_id, test_id, attempt, setting, a column per quantity (NaN: not seen), and for each that may last beyond the
        episode a column "<quantity>_censored": whether the time is a lower limit.
    level : float
        Requested level of intervals.
    """

    level: float = 0.95

    QUANTITIES: ClassVar[dict[str, str]] = {}

    @property
    def settings(self) -> list[str]:
        """The settings, in order."""
        return list(dict.fromkeys(self.rows.setting))

    def of(self, setting: str, name: str) -> Median:
        """The median of a quantity over the episodes of a setting; n = 0 if no episode has it."""
        own, title = self.rows[self.rows.setting == setting], self.QUANTITIES[name]
        own = own[own[name].notna()]
        censored = own[f"{name}_censored"].astype(bool) if f"{name}_censored" in own else ()
        about = {"quantity": f"{title}, {setting}", "claim": f"Under “{setting}”, {title}: {{}}"}
        return median_of(own[name], censored, level=self.level, **about)

    @property
    def estimates(self) -> tuple[Median, ...]:
        """Every quantity of every setting that has it."""
        every = (self.of(setting, name) for setting in self.settings for name in self.QUANTITIES)
        return tuple(each for each in every if each.n)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Cautions on too few episodes, and on outages whose end was not seen."""
        notes, level = [], min((each.level for each in self.estimates), default=self.level)
        if level < self.level:
            low, asked = percent(level), percent(self.level)
            notes.append(
                f"few episodes: intervals from the smallest to the largest value have the level {low}, not {asked}"
            )
        open_end = [name for name in self.QUANTITIES if f"{name}_censored" in self.rows]
        ended = self.rows[[f"{name}_censored" for name in open_end]].astype("boolean").fillna(False).any(axis=1)
        if len(open_end) and ended.any():
            names = ", ".join(f"“{name}”" for name in dict.fromkeys(self.rows.setting[ended]))
            notes.append(f"outages that had not ended when their fault was healed are lower limits: some of {names}")
        return tuple(notes)

    def formatted_table(self) -> pd.DataFrame:
        """One row per quantity, one column per setting: median and interval."""
        columns = {
            name: [self.of(name, key).formatted_with_interval for key in self.QUANTITIES] + [self._counted(name)]
            for name in self.settings
        }
        return pd.DataFrame({"": [*self.QUANTITIES.values(), "episodes (level of intervals)"]} | columns)

    def _counted(self, setting: str) -> str:
        level = min((each.level for name in self.QUANTITIES if (each := self.of(setting, name)).n > 1), default=None)
        return f"{(self.rows.setting == setting).sum()}" + (f" ({percent(level)})" if level else "")
