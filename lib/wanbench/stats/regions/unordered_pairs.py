"""From the ordered rows of table `pairs` to unordered pairs, one value each: the unit of every analysis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...formatting import count
from .check_pairs import check_pairs

FEWEST_FOR_INTERVAL = 5
FEW = 10
SAME_DISTANCE_KM = 1.0
COMBINE = ("median", "geometric mean")


@dataclass(frozen=True, repr=False)
class Sample:
    """
    Unordered pairs with one value each, and what was left out.

    `frame` has `region_a` < `region_b`, `cloud_pair` ("aws-gcp"), `distance_km`, `light_rtt_ms` if the pairs
    had it, `value`, `n_directions`. `first` and `second` index `regions`. `left_out` holds the ordered rows
    not in use with their `reason`.
    """

    column: str
    frame: pd.DataFrame
    left_out: pd.DataFrame

    @cached_property
    def regions(self) -> list[str]:
        """The regions in use, sorted."""
        return sorted({*self.frame.region_a.unique(), *self.frame.region_b.unique()})

    @property
    def n_regions(self) -> int:
        return len(self.regions)

    @property
    def n_pairs(self) -> int:
        return len(self.frame)

    @cached_property
    def first(self) -> np.ndarray:
        """Index of `region_a` in `regions`, per pair."""
        return pd.Index(self.regions).get_indexer(self.frame.region_a)

    @cached_property
    def second(self) -> np.ndarray:
        """Index of `region_b` in `regions`, per pair."""
        return pd.Index(self.regions).get_indexer(self.frame.region_b)

    def __repr__(self) -> str:
        return f"<{count(self.n_pairs, 'pair')} of {count(self.n_regions, 'region')} with {self.column}>"

    def warnings(self) -> tuple[str, ...]:
        """What a reader must know of this sample: rows left out, few regions."""
        said = []
        if len(self.left_out):
            reasons = self.left_out.reason.value_counts(sort=False)
            listed = ", ".join(f"{n:,} {reason}" for reason, n in sorted(reasons.items()))
            said.append(f"{count(len(self.left_out), 'row')} of the pairs left out ({listed})")
        if self.n_regions < FEWEST_FOR_INTERVAL:
            said.append(f"no interval from {self.n_regions} regions; it takes {FEWEST_FOR_INTERVAL}")
        elif self.n_regions < FEW:
            said.append(f"with {self.n_regions} regions the interval itself is rough")
        return tuple(said)


def cloud_pair(first: pd.Series, second: pd.Series) -> pd.Series:
    """The unordered pair of clouds of two columns of region names: "aws-gcp" for either direction."""
    clouds = [[name.partition(":")[0] for name in names] for names in (first, second)]
    joined = ["-".join(sorted(both)) for both in zip(*clouds, strict=True)]
    return pd.Series(joined, index=first.index, dtype="str")


def unordered(pairs: pd.DataFrame, column: str, *, combine: str = "median") -> Sample:
    """
    Collapse ordered pairs to one value per unordered pair.

    Repeated rows of one direction give their median first; then the two directions are combined: by their
    median, or by their geometric mean (for what is analysed as a logarithm).

    Parameters
    ----------
    pairs : DataFrame
        Needs `from_region`, `to_region`, `distance_km` and the column.
    column : str
        What to take; must be positive. Rows without it, or without a distance, are left out and counted. A row with
        a value that is no number, or with a negative or infinite distance, is a ParameterError that names it.
    combine : str
        "median" or "geometric mean".
    """
    if combine not in COMBINE:
        raise ParameterError(f"combine={combine!r}: allowed are {', '.join(COMBINE)}")
    light = [name for name in ("light_rtt_ms",) if isinstance(pairs, pd.DataFrame) and name in pairs.columns]
    rows = check_pairs(pairs, "from_region", "to_region", "distance_km", *light, column)
    reason = _reasons(rows, column)
    left_out = rows.assign(reason=reason)[reason.notna()].reset_index(drop=True)
    rows = rows[reason.isna()]
    ends = np.sort(rows[["from_region", "to_region"]].to_numpy(dtype=object), axis=1)
    value = rows[column]
    kept = {
        "region_a": pd.Series(ends[:, 0], index=rows.index, dtype="str"),
        "region_b": pd.Series(ends[:, 1], index=rows.index, dtype="str"),
        "from_region": rows.from_region,
        "distance_km": rows.distance_km,
        "value": np.log(value) if combine == "geometric mean" else value,
    }
    if "light_rtt_ms" in rows:
        kept["light_rtt_ms"] = rows.light_rtt_ms
    both = ["region_a", "region_b"]
    directions = pd.DataFrame(kept).groupby([*both, "from_region"], as_index=False).median()
    directions["n_directions"] = 1
    groups = directions.drop(columns="from_region").groupby(both, as_index=False)
    frame = groups.median().assign(n_directions=groups.n_directions.sum().n_directions)
    apart = groups.distance_km.max().distance_km - groups.distance_km.min().distance_km
    if (apart > SAME_DISTANCE_KM).any():
        worst = frame.loc[apart.idxmax()]
        raise ParameterError(
            f"{worst.region_a} and {worst.region_b}: distance_km differs by {apart.max():.0f} km "
            "between the two directions; a distance has none"
        )
    if combine == "geometric mean":
        frame["value"] = np.exp(frame.value)
    frame.insert(2, "cloud_pair", cloud_pair(frame.region_a, frame.region_b))
    return Sample(column, frame, left_out)


def _reasons(rows: pd.DataFrame, column: str) -> pd.Series:
    """Why a row is left out, or None."""
    value = rows[column]
    reason = pd.Series(None, index=rows.index, dtype=object)
    reason[~(value > 0)] = f"where {column} is not positive"
    reason[np.isinf(value)] = f"where {column} is infinite"
    reason[value.isna()] = f"without {column}"
    reason[rows.distance_km.isna()] = "without distance_km"
    reason[rows.from_region == rows.to_region] = "from a region to itself"
    return reason


def left_out_of_any(*samples: Sample) -> pd.DataFrame:
    """The rows that any of several samples of the same pairs leaves out, each direction of a pair once."""
    rows = pd.concat([each.left_out for each in samples], ignore_index=True)
    return rows.drop_duplicates(["from_region", "to_region"], ignore_index=True)


def unordered_numbers(first: np.ndarray, second: np.ndarray, n_regions: int) -> np.ndarray:
    """
    Number of the unordered pair of each row, from 0: the same for the two directions of one.

    >>> unordered_numbers(np.array([0, 2, 1]), np.array([1, 1, 2]), 3).tolist()
    [0, 1, 1]
    """
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.unique(low * n_regions + high, return_inverse=True)[1]


def require_regions(sample: Sample, least: int, purpose: str) -> None:
    """ParameterError unless the sample has so many regions."""
    if sample.n_regions < least:
        why = "; ".join(sample.warnings()[: len(sample.left_out) > 0])
        raise ParameterError(
            f"{purpose} needs pairs of at least {least} regions with {sample.column}; "
            f"there are {sample.n_regions}" + (f" ({why})" if why else "")
        )
