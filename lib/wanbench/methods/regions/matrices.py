"""Square matrices over regions, the form that permutation tests need; NaN where unknown."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.checks import check_columns
from wanbench.formatting import count
from wanbench.regions import geodesic_km

POSITION = ["name", "latitude_deg", "longitude_deg"]


def square(values, first, second, n_regions: int, *, symmetric: bool) -> np.ndarray:
    """Values at (first, second), and if `symmetric` at (second, first): (regions, regions)."""
    out = np.full((n_regions, n_regions), np.nan)
    out[first, second] = values
    if symmetric:
        out[second, first] = values
    return out


def of_column(pairs: pd.DataFrame, column: str, names: list[str], *, symmetric: bool) -> np.ndarray:
    """
    A matrix of a column of `pairs` over the regions `names`: the median of a pair's rows, of both directions if
    `symmetric`. Rows of other regions are ignored; a pair without a finite value is NaN.
    """
    check_columns("pairs", pairs, [column])
    value = pd.to_numeric(pairs[column], errors="coerce").astype("float64").to_numpy()
    index = pd.Index(names)
    first, second = (index.get_indexer(pairs[end].to_numpy(dtype=object)) for end in ("from_region", "to_region"))
    used = np.isfinite(value) & (first >= 0) & (second >= 0) & (first != second)
    rows = pd.DataFrame({"a": first[used], "b": second[used], "value": value[used]})
    if symmetric:
        rows["a"], rows["b"] = rows[["a", "b"]].min(axis=1), rows[["a", "b"]].max(axis=1)
    medians = rows.groupby(["a", "b"], as_index=False).value.median()
    return square(medians.value, medians.a.to_numpy(), medians.b.to_numpy(), len(names), symmetric=symmetric)


def distances(pairs: pd.DataFrame, names: list[str], regions: pd.DataFrame | None = None) -> np.ndarray:
    """
    Distance in km of every pair of the regions `names`: from any row of `pairs`, with or without the analysed value,
    otherwise along the WGS-84 geodesic between the coordinates in `regions` (columns name, latitude_deg,
    longitude_deg).
    """
    distance_km = of_column(pairs, "distance_km", names, symmetric=True)
    if regions is None:
        return distance_km
    columns = (check_columns("regions", regions, POSITION)[column] for column in POSITION)
    points = {name: (latitude, longitude) for name, latitude, longitude in zip(*columns, strict=True)}
    for i, j in zip(*np.nonzero(np.triu(np.isnan(distance_km), 1)), strict=True):
        ends = [points.get(names[end], (np.nan, np.nan)) for end in (i, j)]
        if np.isfinite(np.array(ends, dtype=float)).all():
            distance_km[i, j] = distance_km[j, i] = geodesic_km(*ends)
    return distance_km


def gaps(n_pairs: int, covariates: list[np.ndarray]) -> tuple[str, ...]:
    """The caution about missing unordered pairs for a permutation p-value; empty if none is missing."""
    n_regions = len(covariates[0])
    possible = n_regions * (n_regions - 1) // 2
    if n_pairs == possible:
        return ()
    off_diagonal = ~np.eye(n_regions, dtype=bool)
    unknown = int((~np.isfinite(np.stack(covariates)).all(axis=0) & off_diagonal).sum()) // 2
    missing = f"{count(possible - n_pairs, 'pair')} of {possible:,} not measured: "
    if not unknown:
        return (missing + f"every relabelling is compared over the {n_pairs:,} measured ones",)
    where = "its distance" if unknown == 1 else "their distances"
    return (
        missing + f"without {where} relabellings are compared over fewer pairs than the data, which makes p "
        "too large rather than too small; give coordinates (regions=)",
    )
