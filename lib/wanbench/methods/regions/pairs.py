"""Check table `pairs`, and combine rows to one value per unordered or per ordered pair of regions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from wanbench.checks import check_choice, check_columns, refusal
from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.result import Fields
from wanbench.methods.sizes import SIZED, beyond_size
from wanbench.regions import light_rtt_ms

ENDS = ("from_region", "to_region")
TEXTS = (*ENDS, "from_cloud", "to_cloud")
LENGTHS = ("distance_km", "light_rtt_ms")
FEWEST_FOR_INTERVAL = 5  # With fewer units the jackknife has too few degrees of freedom for a useful interval
FEW = 10  # With fewer regions than this, every interval carries a caution
SAME_DISTANCE_KM = 1.0  # Allowed difference between the distances of both directions of a pair, due to rounding
COMBINE = ("median", "geometric mean")


def check_pairs(pairs: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """
    Check some columns of table `pairs`, and return the table with a new index and numbers as float64.

    Names of regions and clouds must be text in every row. All other values must be numbers of a size in `sizes.SIZES`,
    or missing (NaN in the result); `distance_km` and `light_rtt_ms` must also be finite and not negative.

    Raises ParameterError: `pairs` is not a DataFrame, lacks a column, or has an invalid value (the first is named).
    """
    rows = check_columns("pairs", pairs, columns).reset_index(drop=True)
    numbers = {}
    for name in dict.fromkeys(columns):
        if name in TEXTS:
            texts = rows[name].map(lambda value: isinstance(value, str) and bool(value)).to_numpy(dtype=bool)
            _refuse(rows, name, ~texts, "a name")
            continue
        try:
            value = pd.to_numeric(rows[name], errors="coerce").astype("float64")
        except TypeError:  # objects such as lists, which pandas cannot coerce
            value = pd.Series(np.nan, index=rows.index)
        _refuse(rows, name, (value.isna() & rows[name].notna()).to_numpy(), "a number")
        if name in LENGTHS:
            _refuse(rows, name, ((value < 0) | np.isinf(value)).to_numpy(), "a finite number of at least 0")
        _refuse(rows, name, beyond_size(value), SIZED)
        numbers[name] = value
    return rows.assign(**numbers)


def _refuse(rows: pd.DataFrame, name: str, bad: np.ndarray, allowed: str) -> None:
    if not bad.any():
        return
    at = int(np.flatnonzero(bad)[0])
    row = rows.loc[at]
    ends = [str(row[end]) for end in ENDS if end in rows and end != name]
    where = f" ({' to '.join(ends)})" if len(ends) == 2 else ""
    more = f"; {int(bad.sum()) - 1:,} more rows have the same fault" if bad.sum() > 1 else ""
    raise refusal(f"{name} in row {at} of table pairs{where}", row[name], allowed + more)


@dataclass(frozen=True, repr=False)
class Sample:
    """
    Pairs with one value each, and the rows that were left out.

    column: The column of table `pairs` that the values come from.
    frame: For unordered pairs: region_a < region_b, cloud_pair ("aws-gcp"), distance_km, light_rtt_ms (if the table had
        it), value, n_directions. For ordered pairs (`directed`): from_region, to_region, from_cloud, to_cloud,
        distance_km, value.
    left_out: The unused rows of the table, with their `reason`.
    ends: The two columns of `frame` with the regions.
    """

    column: str
    frame: pd.DataFrame
    left_out: pd.DataFrame
    ends: tuple[str, str] = ("region_a", "region_b")

    @cached_property
    def regions(self) -> list[str]:
        """The names of the regions in use, sorted."""
        return sorted({*(name for end in self.ends for name in self.frame[end].unique())})

    @property
    def n_regions(self) -> int:
        return len(self.regions)

    @property
    def n_pairs(self) -> int:
        """The number of unordered pairs."""
        return int(self.both.max()) + 1 if len(self.frame) else 0

    @cached_property
    def first(self) -> np.ndarray:
        return pd.Index(self.regions).get_indexer(self.frame[self.ends[0]])

    @cached_property
    def second(self) -> np.ndarray:
        return pd.Index(self.regions).get_indexer(self.frame[self.ends[1]])

    @cached_property
    def both(self) -> np.ndarray:
        return unordered_numbers(self.first, self.second, self.n_regions)

    def counted(self, n_places: int) -> Fields:
        """Return the fields `n`, `n_regions` and `n_places` of an Estimate."""
        return {"n": self.n_pairs, "n_regions": self.n_regions, "n_places": n_places}

    def __repr__(self) -> str:
        return f"<{count(self.n_pairs, 'pair')} of {count(self.n_regions, 'region')} with {self.column}>"

    def unit_warnings(self) -> tuple[str, ...]:
        """Return one warning if most RTTs are below the round trip of light in fibre, as with a wrong unit; else ()."""
        rtt_ms = self.frame.get("value") if self.column.startswith("rtt") else None
        rtt_ms = self.frame.get("rtt_ms", rtt_ms)
        if rtt_ms is None or (rtt_ms < light_rtt_ms(self.frame.distance_km)).mean() <= 0.5:
            return ()
        return ("most pairs are faster than light in fibre: are the RTTs in ms and the distances in km?",)

    def warnings(self) -> tuple[str, ...]:
        """Warn about rows left out, few regions, and impossible RTTs."""
        cautions = []
        if len(self.left_out):
            reasons = self.left_out.reason.value_counts(sort=False)
            listed = ", ".join(f"{n:,} {reason}" for reason, n in sorted(reasons.items()))
            cautions.append(f"{count(len(self.left_out), 'row')} of the table of pairs left out ({listed})")
        if self.n_regions < FEWEST_FOR_INTERVAL:
            few = count(self.n_regions, "region")
            cautions.append(f"no interval from {few}; it needs at least {FEWEST_FOR_INTERVAL}")
        elif self.n_regions < FEW:
            cautions.append(f"with only {self.n_regions} regions, the interval itself is imprecise")
        return (*cautions, *self.unit_warnings())


def cloud_pair(first: pd.Series, second: pd.Series) -> pd.Series:
    """Return the clouds of each pair, from two columns of region names: "aws-gcp" for both directions."""
    clouds = [[name.partition(":")[0] for name in names] for names in (first, second)]
    joined = ["-".join(sorted(both)) for both in zip(*clouds, strict=True)]
    return pd.Series(joined, index=first.index, dtype="str")


def unordered(pairs: pd.DataFrame, column: str, *, combine: str = "median") -> Sample:
    """
    Combine the rows of table `pairs` to one value per unordered pair.

    Take the median of the rows of each direction, then combine both directions. Rows without a finite positive value,
    without a distance, or from a region to itself are left out.

    column: The column with the values.
    combine: How to combine directions: "median", or "geometric mean" for analyses of the logarithm.
    """
    check_choice("combine", combine, COMBINE)
    light = ["light_rtt_ms"] if "light_rtt_ms" in getattr(pairs, "columns", ()) else []
    rows = check_pairs(pairs, "from_region", "to_region", "distance_km", *light, column)
    reason = _reasons(rows, column)
    out = reason.notna()
    left_out = rows[out].assign(reason=reason[out]).reset_index(drop=True)
    rows = rows[~out]
    ends = np.sort(rows[["from_region", "to_region"]].to_numpy(dtype=object), axis=1)
    value = rows[column]
    kept = rows[["from_region", "distance_km", *light]].assign(
        region_a=pd.Series(ends[:, 0], index=rows.index, dtype="str"),
        region_b=pd.Series(ends[:, 1], index=rows.index, dtype="str"),
        value=np.log(value) if combine == "geometric mean" else value,
    )
    both = ["region_a", "region_b"]
    directions = kept.groupby([*both, "from_region"], as_index=False).median()
    directions["n_directions"] = 1
    groups = directions.drop(columns="from_region").groupby(both, as_index=False)
    frame = groups.median().assign(n_directions=groups.n_directions.sum().n_directions)
    apart = groups.distance_km.max().distance_km - groups.distance_km.min().distance_km
    if (apart > SAME_DISTANCE_KM).any():
        worst = frame.loc[apart.idxmax()]
        raise ParameterError(
            f"{worst.region_a} and {worst.region_b}: distance_km differs by {number(apart.max(), 0)} km between "
            "directions; allowed: one distance per pair."
        )
    if combine == "geometric mean":
        frame["value"] = np.exp(frame.value)
    frame.insert(2, "cloud_pair", cloud_pair(frame.region_a, frame.region_b))
    return Sample(column, frame, left_out)


def _reasons(rows: pd.DataFrame, column: str) -> pd.Series:
    """Return the reason why each row is left out, or None; later reasons override earlier ones."""
    value = rows[column].to_numpy(dtype="float64", na_value=np.nan)
    reason = np.full(len(rows), None, dtype=object)
    reason[~(value > 0)] = f"where {column} is not positive"
    reason[np.isinf(value)] = f"where {column} is infinite"
    reason[np.isnan(value)] = f"without {column}"
    reason[rows.distance_km.isna().to_numpy()] = "without distance_km"
    reason[(rows.from_region == rows.to_region).to_numpy(dtype=bool)] = "from a region to itself"
    return pd.Series(reason, index=rows.index, dtype=object)


def left_out_of_any(*samples: Sample) -> pd.DataFrame:
    """Join the `left_out` rows of several samples of one table; keep the first row of each ordered pair of regions."""
    rows = pd.concat([sample.left_out for sample in samples], ignore_index=True)
    return rows.drop_duplicates(["from_region", "to_region"], ignore_index=True)


def unordered_numbers(first: np.ndarray, second: np.ndarray, n_regions: int) -> np.ndarray:
    """
    Number the unordered pairs from 0, and return the number of each row; both directions have the same number.

    >>> unordered_numbers(np.array([0, 2, 1]), np.array([1, 1, 2]), 3).tolist()
    [0, 1, 1]
    """
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.unique(low * n_regions + high, return_inverse=True)[1]


def require_regions(sample: Sample, minimum: int, purpose: str) -> None:
    """Raise ParameterError if the sample has fewer regions than the minimum."""
    if sample.n_regions < minimum:
        why = f" ({sample.warnings()[0]})" if len(sample.left_out) else ""
        raise ParameterError(
            f"{purpose} needs pairs of at least {minimum} regions with {sample.column}; there are "
            f"{sample.n_regions}{why}."
        )


def directed(pairs: pd.DataFrame, column: str) -> Sample:
    """
    Combine the rows of each ordered pair to their median.

    Rows that `unordered` leaves out are left out here, too.
    """
    rows = check_pairs(pairs, *ENDS, "distance_km", column)
    rows = rows.assign(row=range(len(rows)))
    left_out = unordered(rows, column).left_out
    rows = rows[~rows.row.isin(left_out.row)]
    frame = rows[[*ENDS, "distance_km"]].assign(value=rows[column]).groupby([*ENDS], as_index=False).median()
    for end in ("from", "to"):
        clouds = [name.partition(":")[0] for name in frame[f"{end}_region"]]
        frame[f"{end}_cloud"] = pd.Series(clouds, index=frame.index, dtype="str")
    return Sample(column, frame, left_out.drop(columns="row"), ENDS)
