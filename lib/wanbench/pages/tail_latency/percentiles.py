"""Test 3 of the source: percentiles of both systems at one load, and how many records each percentile needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import pandas as pd

from wanbench.checks import check_level
from wanbench.formatting import number
from wanbench.methods.result import RowsResult
from wanbench.methods.tails import quantile_intervals as order
from wanbench.methods.tails.distribution import FEW_BEYOND

from .compare import TailComparison, compare_tails
from .repeated import TailTrials

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)


@dataclass(frozen=True, repr=False)
class Percentiles(RowsResult):
    """
    Percentiles of two systems.

    Attributes
    ----------
    compared : TailComparison
    rows : DataFrame
        One row per percentile and system: system, quantile, latency_ms, low, high, n, effective_n (equivalent number of
        independent records), needed (records for an interval with two ends).
    """

    compared: TailComparison

    TITLE = "Percentiles, and the records that each needs"

    @property
    def estimates(self):
        """The percentiles of both systems."""
        return (*self.compared.a.estimates, *self.compared.b.estimates)

    @property
    def sentence(self) -> str:
        """The highest percentile of each system with a closed interval, and why the next one is open."""
        parts = []
        for result in (self.compared.a, self.compared.b):
            own = self.rows[self.rows.system == result.tail.name]
            known = own[own.high.map(isfinite) & own.low.map(isfinite)]
            if known.empty:
                parts.append(f"{result.tail.name}: no percentile has an interval with two ends")
                continue
            last = known.iloc[-1]
            one = result[last["quantile"]]
            text = (
                f"{result.tail.name}: up to {order.name(last['quantile'])}, {one.formatted} ({one.formatted_interval})"
            )
            if last.name != own.index[-1]:
                lacking = result[own["quantile"][own.index > last.name].iloc[0]]
                text += f"; {lacking.warnings[0]}" if lacking.warnings else ""
            parts.append(text)
        return f"Percentiles with an interval that has two ends. {'. '.join(parts)}."

    @property
    def cautions(self) -> tuple[str, ...]:
        """The cautions of the tails, except open upper ends, which the table shows."""
        tails = (self.compared.a.tail, self.compared.b.tail)
        return tuple(dict.fromkeys(text for tail in tails for text in tail.cautions))

    def formatted_table(self) -> pd.DataFrame:
        """A row per percentile, with a column per system."""
        rows = []
        for q in self.compared.a.quantiles:
            row = {"percentile": order.name(q), "records needed": f"{order.min_values(q, self._level):,}"}
            for result in (self.compared.a, self.compared.b):
                one, name = result[q], result.tail.name
                own = self.rows[(self.rows.system == name) & (self.rows["quantile"] == q)].iloc[0]
                row |= {
                    name: one.formatted,
                    f"{name}: {one.formatted_level} interval": one.formatted_interval,
                    f"{name}: {own.n:,} records are worth": number(own.effective_n, 0)
                    if own.n * (1 - q) >= FEW_BEYOND
                    else "unknown",
                }
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def _level(self) -> float:
        return self.compared.a.estimates[0].level

    def figure(self, *, note: str = ""):
        """The percentile plot of both, on an axis of nines."""
        return self.compared.figure(note=note)


def percentiles(a: TailTrials, b: TailTrials, at: Sequence[float] = QUANTILES, *, level: float = 0.95) -> Percentiles:
    """Percentiles of two systems at one load, from the records of all trials of each."""
    level = check_level(level)
    compared = compare_tails(a.pooled, b.pooled, at, level=level)
    rows = [
        {
            "system": result.tail.name,
            "quantile": q,
            "latency_ms": one.estimate,
            "low": one.low,
            "high": one.high,
            "n": result.tail.n,
            "effective_n": result.tail.effective_n(q, level),
            "needed": order.min_values(q, level),
        }
        for result in (compared.a, compared.b)
        for q, one in zip(result.quantiles, result.estimates, strict=True)
    ]
    return Percentiles(pd.DataFrame(rows), compared)
