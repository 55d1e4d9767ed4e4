"""One correlation over several selections of the same rows: which selection gives a published figure?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, nan

import numpy as np
import pandas as pd

from wanbench.checks import FEWEST_RESAMPLES, check_choice
from wanbench.errors import ParameterError
from wanbench.formatting import count, number, span
from wanbench.methods.distance.straight_lines import fit_rtt, fit_throughput
from wanbench.methods.regions.unordered_pairs import FEWEST_FOR_INTERVAL
from wanbench.methods.result import Estimate, Result

QUANTITIES = {"rtt_ms": "RTT", "throughput_bps": "Log throughput"}
R_DECIMALS = 3
"""One more than published correlations have, so that a reader can check the rounding."""


@dataclass(frozen=True, repr=False)
class Correlations(Result):
    """
    The correlation of a column with distance over each selection of rows.

    Attributes
    ----------
    rows : DataFrame
        Per selection: selection, n_rows (with a distance and a positive value), n_pairs, n_regions, r_rows (over the
        unchanged rows, as in a chart of them: repeats and both directions count as independent), r_pairs (over
        unordered pairs), low, high, reproduces (one of the two rounds to the claimed value).
    """

    DRAWN_BY = "correlations_figure.r_by_selection"

    column: str
    claimed: float
    rows: pd.DataFrame

    @property
    def closest(self) -> pd.Series:
        """The selection whose correlation over rows is nearest to the claimed one."""
        return self.table().iloc[0]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The correlation over the rows of the first selection, without an interval, as in the source."""
        first = self.rows.iloc[0]
        return (
            Estimate(
                quantity=f"correlation of {QUANTITIES[self.column]} with distance over rows",
                claim=f"{QUANTITIES[self.column]} correlates with distance at r = {{}}",
                estimate=first.r_rows,
                low=nan,
                high=nan,
                unit="",
                n=int(first.n_rows),
                n_regions=int(first.n_regions),
                basis=count(int(first.n_rows), "row"),
                method="Pearson's r over unchanged rows, each taken as one observation, as in the source",
                assumption="Among many selections, one reproduces a number by chance",
            ),
        )

    @property
    def sentence(self) -> str:
        name, first, closest = QUANTITIES[self.column], self.rows.iloc[0], self.closest
        matches = "; ".join(self.rows.selection[self.rows.reproduces])
        return (
            f"{name} against distance ({first.selection}): r = {number(first.r_rows, R_DECIMALS)} over "
            f"{count(int(first.n_rows), 'row')}, where r = {self.claimed:g} is claimed. Of "
            f"{count(len(self.rows), 'selection')} of rows the nearest is r = {number(closest.r_rows, R_DECIMALS)} "
            f"({closest.selection}). To the claimed value round: {matches or 'none of them'}."
        )

    def table(self) -> pd.DataFrame:
        """`rows`, nearest to the claimed value first."""
        return self.rows.iloc[(self.rows.r_rows - self.claimed).abs().argsort(kind="stable")]

    def formatted_table(self) -> pd.DataFrame:
        rows = self.table()
        return pd.DataFrame(
            {
                "Selection": rows.selection,
                "Rows": rows.n_rows.map("{:,}".format),
                "r over rows": [number(r, R_DECIMALS) for r in rows.r_rows],
                "Pairs": rows.n_pairs.map("{:,}".format),
                "Regions": rows.n_regions,
                "r over pairs": [number(r, R_DECIMALS) for r in rows.r_pairs],
                "95 % interval": [span(*ends, R_DECIMALS) for ends in zip(rows.low, rows.high, strict=True)],
                f"{self.claimed:g}?": np.where(rows.reproduces, "reproduced", "no"),
            }
        )


def correlations(selections: Mapping[str, pd.DataFrame], claimed: float, *, column: str = "rtt_ms") -> Correlations:
    """
    Correlate RTT, or the logarithm of throughput, with distance over each selection of rows.

    Parameters
    ----------
    selections : mapping of str to DataFrame
        By label ("within AWS"), the rows: one per test or per ordered pair, with `from_region`, `to_region`,
        `distance_km` and the column. The first is the plain selection.
    claimed : float
        The published correlation; its number of digits decides which values round to it.
    column : str
        "rtt_ms" or "throughput_bps".
    """
    check_choice("column", column, QUANTITIES)
    half_step = 0.5 * 10.0 ** -len(repr(float(claimed)).partition(".")[2])
    fit = fit_rtt if column == "rtt_ms" else fit_throughput
    rows = []
    for label, selected in selections.items():
        used = selected[(selected[column] > 0) & selected.distance_km.notna()]
        y = used[column].astype("float64")
        y = np.log10(y) if column == "throughput_bps" else y
        pearson = fit(used, resamples=FEWEST_RESAMPLES).pearson
        varies = len(used) > 2 and np.ptp(y) > 0 and np.ptp(used.distance_km) > 0
        r_rows = float(np.corrcoef(used.distance_km, y)[0, 1]) if varies else nan
        has_interval = pearson.n_regions >= FEWEST_FOR_INTERVAL
        off_by = min(abs(r_rows - claimed), abs(pearson.estimate - claimed))
        rows.append(
            {
                "selection": label,
                "n_rows": len(used),
                "n_pairs": pearson.n,
                "n_regions": pearson.n_regions,
                "r_rows": r_rows,
                "r_pairs": pearson.estimate,
                "low": pearson.low if has_interval else nan,
                "high": pearson.high if has_interval else nan,
                "reproduces": bool(off_by <= half_step * (1 + 1e-9)),
            }
        )
    if not any(isfinite(row["r_rows"]) for row in rows):
        raise ParameterError(f"no selection has a correlation: {column} or distance_km does not vary")
    return Correlations(column, claimed, pd.DataFrame(rows))
