"""Base class of results with one row per episode, such as outages or restarts: medians, intervals and their table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from wanbench.formatting import percent
from wanbench.methods.result import Estimate, RowsResult

from .means import Median, median_of


@dataclass(frozen=True, repr=False)
class OverEpisodes(RowsResult):
    """
    Quantities measured in each episode, and their medians. A subclass names the quantities in QUANTITIES, and adds the
    sentence.

    rows: One row per episode: column `BY`; a column per quantity, missing if the episode did not show the quantity; and
        "<quantity>_censored", for quantities that may last beyond the episode: whether the value is a lower bound.
    level: Requested level of intervals.
    """

    level: float = 0.95

    QUANTITIES: ClassVar[dict[str, str]] = {}
    UNITS: ClassVar[dict[str, str]] = {}
    """Units of the quantities that are not in seconds."""
    BY: ClassVar[str] = "setting"

    @property
    def settings(self) -> list[str]:
        """The values of column `BY` (settings or phases), in order of appearance."""
        return list(dict.fromkeys(self.rows[self.BY]))

    def of(self, setting: str, name: str) -> Median:
        """
        Estimate the median of quantity `name` over the episodes of a setting; `n` is 0 if no episode has that quantity.
        """
        own, title = self.rows[self.rows[self.BY] == setting], self.QUANTITIES[name]
        own = own[own[name].notna()]
        censored = own[f"{name}_censored"].astype(bool) if f"{name}_censored" in own else ()
        about = {"quantity": f"{title}, {setting}", "claim": f"With “{setting}”, the median of “{title}” is {{}}"}
        return median_of(floats(own[name]), censored, level=self.level, unit=self.UNITS.get(name, "s"), **about)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Return the medians of all quantities in all settings, except quantities never seen in a setting."""
        every = (self.of(setting, name) for setting in self.settings for name in self.QUANTITIES)
        return tuple(each for each in every if each.n)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warn about too few episodes, and about outages whose end was not seen."""
        notes, level = [], min((each.level for each in self.estimates), default=self.level)
        if level < self.level:
            low, asked = percent(level), percent(self.level)
            notes.append(
                f"with so few episodes, an interval runs from the smallest to the largest value; its level is {low}, "
                f"not {asked}"
            )
        flags = [f"{name}_censored" for name in self.QUANTITIES if f"{name}_censored" in self.rows]
        ended = self.rows[flags].astype("boolean").fillna(False).any(axis=1)
        if len(flags) and ended.any():
            names = ", ".join(f"“{name}”" for name in dict.fromkeys(self.rows[self.BY][ended]))
            notes.append(
                "an outage that lasted until its fault was healed counts only up to that time, so its duration is a "
                f"lower bound; this applies to some outages of {names}"
            )
        return tuple(notes)

    def formatted_medians(self) -> pd.DataFrame:
        """Return a row per quantity and a column per setting: median and interval as text."""
        columns = {
            name: [self.of(name, key).formatted_with_interval for key in self.QUANTITIES] for name in self.settings
        }
        return pd.DataFrame({"": list(self.QUANTITIES.values())} | columns)

    def formatted_table(self) -> pd.DataFrame:
        """Return the medians as text, with the number of episodes in the last row."""
        row = {"": "number of episodes (level of the intervals)"}
        for name in self.settings:
            levels = [each.level for key in self.QUANTITIES if (each := self.of(name, key)).n > 1]
            level = f" ({percent(min(levels))})" if levels else ""
            row[name] = f"{(self.rows[self.BY] == name).sum()}{level}"
        return pd.concat([self.formatted_medians(), pd.DataFrame([row])], ignore_index=True)


def floats(values: pd.Series) -> np.ndarray:
    """Return values as floats, NaN for missing ones."""
    return pd.to_numeric(values, errors="coerce").astype("Float64").to_numpy(dtype=float, na_value=np.nan)
