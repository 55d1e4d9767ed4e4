"""Possible units of a column: each reading against the limit of the sender's instance type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import count, number, quantity
from wanbench.methods.result import Estimate, RowsResult


@dataclass(frozen=True, repr=False)
class UnitReadings(RowsResult):
    """
    A column of rates, read in several units.

    Attributes
    ----------
    rows : DataFrame
        Per reading and sender: reading, sender, n, max_bps, limit_bps, n_above, share_of_limit.
    step : int
        The greatest common divisor of the values (1 if they are not whole numbers).
    """

    DRAWN_BY = "unit_readings_figure.max_rate_over_limit"

    column: str
    step: int

    @property
    def possible(self) -> list[str]:
        """The readings under which no value is above its sender's limit."""
        n_above = self.rows.groupby("reading", sort=False).n_above.sum()
        return n_above.index[n_above == 0].tolist()

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The number of possible readings."""
        n = int(self.rows.groupby("reading").n.sum().max())
        return (
            Estimate(
                quantity=f"possible readings of {self.column}",
                claim=f"{self.column} has {{}}",
                estimate=len(self.possible),
                low=nan,
                high=nan,
                unit="possible readings",
                n=n,
                basis=count(n, "value"),
                method="every value in each unit against the limit of the sender's instance type",
                assumption="The stated instance types were used, and their limits hold",
            ),
        )

    @property
    def sentence(self) -> str:
        parts = []
        for reading, part in self.rows.groupby("reading", sort=False):
            worst = part.loc[part.share_of_limit.idxmax()]
            parts.append(
                f"as {reading}, {count(int(part.n_above.sum()), 'row')} would exceed the limit of the sender's "
                f"instance (most of all {quantity(worst.max_bps, 'bit/s')} from {worst.sender}, "
                f"{number(worst.share_of_limit, 2)} times its {quantity(worst.limit_bps, 'bit/s')})"
            )
        step = (
            f" Every value is a multiple of {self.step:,}, as counts of bytes sent in blocks are."
            if self.step > 1
            else ""
        )
        possible = " or ".join(self.possible) or "none of them"
        return f"Read {'; '.join(parts)}: the column {self.column} can be {possible}.{step}"

    def formatted_table(self) -> pd.DataFrame:
        rows = self.rows
        return pd.DataFrame(
            {
                "Read as": rows.reading,
                "Sender": rows.sender,
                "n": rows.n.map("{:,}".format),
                "Maximum": [quantity(value, "bit/s") for value in rows.max_bps],
                "Limit of the instance": [quantity(value, "bit/s") for value in rows.limit_bps],
                "Rows above it": rows.n_above.map("{:,}".format),
            }
        )


def unit_readings(
    values: pd.Series, senders: pd.Series, limits_bps: Mapping[str, float], factors: Mapping[str, float]
) -> UnitReadings:
    """
    Read a column of rates in several units.

    Parameters
    ----------
    values, senders : Series
        The column, and the sending cloud of each row.
    limits_bps : mapping of str to float
        The maximum rate of each sender's instance, in bit/s.
    factors : mapping of str to float
        The factor from values to bit/s under each reading: {"bytes/s": 8, "bit/s": 1}.
    """
    used = pd.DataFrame({"value": values.astype("float64"), "sender": senders}).dropna()
    missing = sorted(set(used.sender) - set(limits_bps))
    if missing:
        raise ParameterError(f"limits_bps lacks {', '.join(missing)}; it has {', '.join(limits_bps) or 'none'}.")
    rows = []
    for reading, factor in factors.items():
        for sender, part in used.groupby("sender"):
            rates, limit = part.value * factor, float(limits_bps[sender])
            rows.append(
                {
                    "reading": reading,
                    "sender": sender,
                    "n": len(part),
                    "max_bps": rates.max(),
                    "limit_bps": limit,
                    "n_above": int((rates > limit).sum()),
                    "share_of_limit": rates.max() / limit,
                }
            )
    return UnitReadings(pd.DataFrame(rows), str(values.name), _step(used.value.to_numpy()))


def _step(values: np.ndarray) -> int:
    """The greatest common divisor of whole numbers; 1 where one is not whole, or too large for a float to hold."""
    if not len(values) or (values != np.round(values)).any() or np.abs(values).max() >= 2**53:
        return 1
    return max(int(np.gcd.reduce(values.astype("int64"))), 1)
