"""What the numbers of a column can mean: each reading of its unit against what the senders' network allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from math import gcd

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...findings import Finding
from ...formatting import count, quantity
from ...stats.result import Result


@dataclass(frozen=True, repr=False)
class Readings(Result):
    """
    `rows` has per reading and sender: reading, sender, n, greatest_bps, limit_bps, n_above, share_of_limit.

    `step` is the greatest number that divides every value (1 where they are not whole numbers).
    """

    column: str
    rows: pd.DataFrame
    step: int

    @property
    def possible(self) -> list[str]:
        """The readings under which no value is above its sender's limit."""
        above = self.rows.groupby("reading", sort=False).n_above.sum()
        return [name for name, n in above.items() if n == 0]

    def table(self) -> pd.DataFrame:
        """The rows in words."""
        return pd.DataFrame(
            {
                "read as": self.rows.reading,
                "sender": self.rows.sender,
                "n": self.rows.n,
                "greatest": [quantity(value, "bit/s") for value in self.rows.greatest_bps],
                "limit of the instance": [quantity(value, "bit/s") for value in self.rows.limit_bps],
                "rows above it": self.rows.n_above,
            }
        )

    def __str__(self) -> str:
        said = []
        for name, part in self.rows.groupby("reading", sort=False):
            worst = part.loc[part.share_of_limit.idxmax()]
            above = f"{count(int(part.n_above.sum()), 'row')} above what the sender's instance can send"
            said.append(
                f"as {name}, {above} (at most {quantity(worst.greatest_bps, 'bit/s')} from {worst.sender}, "
                f"{worst.share_of_limit:.2f} times its {quantity(worst.limit_bps, 'bit/s')})"
            )
        step = f" Every value is a multiple of {self.step:,}." if self.step > 1 else ""
        fits = " or ".join(self.possible) or "none of them"
        return f"Column {self.column} read {'; '.join(said)}. Possible: {fits}.{step}"

    DRAWN_BY = "survey_figures.column_meanings"

    def finding(self, name: str, page: str = "") -> Finding:
        """The finding that says which readings are possible."""
        return Finding(
            name=name,
            sentence=str(self),
            estimate=len(self.possible),
            low=None,
            high=None,
            unit="possible readings",
            n=int(self.rows.groupby("reading").n.sum().max()),
            n_regions=None,
            method="every value in each unit against what the sender's instance type can send",
            assumption="The instance types are those that were used, and their limits hold",
            page=page,
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>{self.table().to_html(index=False, border=0)}"


def column_readings(
    values: pd.Series,
    senders: pd.Series,
    limits_bps: Mapping[str, float],
    factors: Mapping[str, float],
    *,
    tolerance: float = 0.0,
) -> Readings:
    """
    Try several units on a column of rates.

    Parameters
    ----------
    values, senders : Series
        The column, and who sent in each row (a cloud).
    limits_bps : mapping of str to float
        What each sender's instance can send at most, in bit/s.
    factors : mapping of str to float
        What a reading multiplies a value by to have bit/s: {"bytes/s": 8, "bit/s": 1}.
    tolerance : float
        How far above its limit a rate may be, as a fraction of it.
    """
    known = pd.DataFrame({"value": values.astype("float64"), "sender": senders}).dropna()
    unknown = sorted(set(known.sender) - set(limits_bps))
    if unknown:
        raise ParameterError(f"no limit for {', '.join(unknown)}; limits_bps has {', '.join(limits_bps)}")
    rows = []
    for reading, factor in factors.items():
        for sender, part in known.groupby("sender"):
            rates, limit = part.value * factor, float(limits_bps[sender])
            rows.append(
                {
                    "reading": reading,
                    "sender": sender,
                    "n": len(part),
                    "greatest_bps": rates.max(),
                    "limit_bps": limit,
                    "n_above": int((rates > limit * (1 + tolerance)).sum()),
                    "share_of_limit": rates.max() / limit,
                }
            )
    return Readings(str(values.name), pd.DataFrame(rows), _step(known.value.to_numpy()))


def _step(values: np.ndarray) -> int:
    """The greatest common divisor of whole numbers; 1 where one is not whole."""
    if not len(values) or (values != np.round(values)).any() or np.abs(values).max() >= 2**53:
        return 1
    return max(gcd(*map(int, values)), 1)
