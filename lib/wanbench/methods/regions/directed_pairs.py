"""From the rows of table `pairs` to one value per ordered pair, for analyses of directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .check_pairs import check_pairs
from .unordered_pairs import unordered, unordered_numbers

DIRECTION = ["from_region", "to_region"]


@dataclass(frozen=True)
class Directed:
    """
    One value per ordered pair, and the rows left out.

    `frame` has from_region, to_region, from_cloud, to_cloud, distance_km, `value` and the columns kept. `first` and
    `second` index `regions`; `both` numbers the unordered pairs. `left_out` holds the unused rows with their `reason`.
    """

    column: str
    frame: pd.DataFrame
    left_out: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def regions(self) -> list[str]:
        """The regions in use, sorted."""
        return sorted({*self.frame.from_region, *self.frame.to_region})

    @property
    def n_regions(self) -> int:
        return len(self.regions)

    @property
    def n_pairs(self) -> int:
        """Unordered pairs with at least one direction."""
        return int(self.both.max()) + 1 if len(self.frame) else 0

    @property
    def first(self) -> np.ndarray:
        """Index of `from_region` in `regions`, per row."""
        return np.searchsorted(self.regions, self.frame.from_region.to_numpy())

    @property
    def second(self) -> np.ndarray:
        """Index of `to_region` in `regions`, per row."""
        return np.searchsorted(self.regions, self.frame.to_region.to_numpy())

    @property
    def both(self) -> np.ndarray:
        """Number of the unordered pair, per row."""
        return unordered_numbers(self.first, self.second, self.n_regions)

    def warnings(self) -> tuple[str, ...]:
        """Cautions about this sample: rows left out, few regions."""
        return self.notes


def directed(pairs: pd.DataFrame, column: str, *, keep: tuple[str, ...] = ()) -> Directed:
    """
    One value per ordered pair: the median of its rows.

    Rows without a positive value or without a distance are left out and counted, by the rules of `unordered`. `keep`
    names further columns of numbers, which become medians as well.
    """
    rows = check_pairs(pairs, *DIRECTION, "distance_km", column, *keep)
    rows = rows.assign(row=range(len(rows)))
    sample = unordered(rows, column)
    rows = rows[~rows.row.isin(sample.left_out.row)]
    kept = rows[[*DIRECTION, *dict.fromkeys(("distance_km", *keep))]].assign(value=rows[column])
    frame = kept.groupby(DIRECTION, as_index=False).median()
    for end in ("from", "to"):
        clouds = [name.partition(":")[0] for name in frame[f"{end}_region"]]
        frame[f"{end}_cloud"] = pd.Series(clouds, index=frame.index, dtype="str")
    left_out = sample.left_out.drop(columns="row")
    return Directed(column, frame, left_out, sample.warnings())
