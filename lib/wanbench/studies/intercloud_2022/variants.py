"""One correlation under several readings of the same data: what would make a published figure come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from math import isfinite, nan

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...findings import Finding
from ...formatting import count, span
from ...stats.distance.fits import fit_rtt, fit_throughput
from ...stats.regions.unordered_pairs import FEWEST_FOR_INTERVAL
from ...stats.result import Estimate, Result

QUANTITIES = {"rtt_ms": "RTT", "throughput_bps": "Log throughput"}
CONTINENTS = {
    "Europe": (35.0, 72.0, -12.0, 42.0),
    "Asia": (-11.0, 55.0, 60.0, 150.0),
}
"""Boxes of latitude (from, to) and longitude (from, to), in degrees."""
DOUBTED_OUT = "the regions of doubted coordinates left out"
DOUBTED_OUT_CATALOGUE = "these regions left out and the catalogue's coordinates"
FEWEST_ROWS = 100
CHART_KM, CHART_MS = 17_000.0, 300.0


@dataclass(frozen=True, repr=False)
class Variants(Result):
    """
    The correlation with distance under each reading.

    `rows` has per reading: reading, n_rows (with a distance and a positive value), n_pairs, n_regions, r_rows (over
    the rows as they stand, repeats and both directions counted as independent, which is how a chart of the rows has
    it), r_pairs (over unordered pairs), low, high, comes_out (either rounds to the claimed value).
    """

    quantity: str
    claimed: float
    rows: pd.DataFrame

    @property
    def closest(self) -> pd.Series:
        """The reading whose correlation over rows is nearest to the claimed one."""
        return self.rows.loc[(self.rows.r_rows - self.claimed).abs().idxmin()]

    def table(self) -> pd.DataFrame:
        """`rows`, nearest to the claimed value first."""
        return self.rows.iloc[(self.rows.r_rows - self.claimed).abs().argsort(kind="stable")]

    def __str__(self) -> str:
        first, near = self.rows.iloc[0], self.closest
        out = self.rows[self.rows.comes_out].reading.tolist()
        said = f"It comes out with {'; '.join(out)}." if out else "None of them gives it."
        return (
            f"{QUANTITIES[self.quantity]} against distance, with {first.reading}: r = {first.r_rows:.3f} over "
            f"{count(int(first.n_rows), 'row')}, where r = {self.claimed:g} is claimed. Of "
            f"{count(len(self.rows), 'reading')} the nearest is r = {near.r_rows:.3f}, with {near.reading}. {said}"
        )

    DRAWN_BY = "survey_figures.variants"

    def finding(self, name: str, page: str = "") -> Finding:
        """The finding that compares the claimed correlation with the plain reading."""
        first = self.rows.iloc[0]
        return Finding(
            name=name,
            sentence=str(self),
            estimate=first.r_rows,
            low=None,
            high=None,
            unit="",
            n=int(first.n_rows),
            n_regions=int(first.n_regions),
            method="Pearson's r over rows as they stand, each taken as one observation: so the source has it",
            assumption="Among many readings one gives a number by chance",
            page=page,
        )

    def _repr_html_(self) -> str:
        rows = self.table()
        shown = pd.DataFrame(
            {
                "reading": rows.reading,
                "rows": rows.n_rows,
                "r over rows": rows.r_rows,
                "pairs": rows.n_pairs,
                "regions": rows.n_regions,
                "r over pairs": rows.r_pairs,
                "its interval": [span(*ends, 3) or "none" for ends in zip(rows.low, rows.high, strict=True)],
                f"{self.claimed:g}?": rows.comes_out.map({True: "comes out", False: ""}),
            }
        )
        return f"<p>{escape(str(self))}</p>{shown.to_html(index=False, border=0, float_format='%.3f')}"


def variants(readings: Mapping[str, pd.DataFrame], claimed: float, *, column: str = "rtt_ms") -> Variants:
    """
    Correlate RTT, or the logarithm of throughput, with distance in each table.

    Parameters
    ----------
    readings : mapping of str to DataFrame
        What the reading is ("within AWS") and its rows, one per test or per ordered pair, with `from_region`,
        `to_region`, `distance_km` and the column. The first is the plain reading.
    claimed : float
        The published correlation; how many digits it has decides what rounds to it.
    column : str
        "rtt_ms" or "throughput_bps".
    """
    if column not in QUANTITIES:
        raise ParameterError(f"column={column!r}: allowed are {', '.join(QUANTITIES)}")
    half_step = 0.5 * 10.0 ** -len(repr(float(claimed)).partition(".")[2])
    fit = fit_rtt if column == "rtt_ms" else fit_throughput
    found = []
    for reading, rows in readings.items():
        used = rows[(rows[column] > 0) & rows.distance_km.notna()]
        y = used[column].astype("float64")
        y = np.log10(y) if column == "throughput_bps" else y
        pearson: Estimate = fit(used, resamples=1).pearson
        varies = len(used) > 2 and np.ptp(y) > 0 and np.ptp(used.distance_km) > 0
        plain = float(np.corrcoef(used.distance_km, y)[0, 1]) if varies else nan
        enough = pearson.n_regions >= FEWEST_FOR_INTERVAL
        found.append(
            {
                "reading": reading,
                "n_rows": len(used),
                "n_pairs": pearson.n,
                "n_regions": pearson.n_regions,
                "r_rows": plain,
                "r_pairs": pearson.estimate,
                "low": pearson.low if enough else nan,
                "high": pearson.high if enough else nan,
                "comes_out": bool(
                    min(abs(plain - claimed), abs(pearson.estimate - claimed)) <= half_step * (1 + 1e-9)
                ),
            }
        )
    if not any(isfinite(row["r_rows"]) for row in found):
        raise ParameterError(f"no reading has a correlation: {column} or distance_km does not vary")
    return Variants(column, claimed, pd.DataFrame(found))


def survey_readings(
    tests: pd.DataFrame, catalogue: pd.DataFrame, doubted: tuple[str, ...] = ()
) -> dict[str, pd.DataFrame]:
    """
    Ways in which a chart of a survey's tests may have been made from the same rows.

    Parameters
    ----------
    tests : DataFrame
        One row per test: run_id, from_region, to_region, rtt_ms, throughput_bps, distance_km (by the survey's own
        coordinates), distance_catalogue_km (by the catalogue's).
    catalogue : DataFrame
        Table `regions`, for the continents.
    doubted : tuple of str
        Regions whose coordinates are doubted.
    """
    by_catalogue = tests.assign(distance_km=tests.distance_catalogue_km)
    doubt = tests.from_region.isin(doubted) | tests.to_region.isin(doubted)
    where = _continents(catalogue)
    ends = pd.DataFrame({"a": tests.from_region.map(where), "b": tests.to_region.map(where)})
    far = ((ends.a == "Europe") & (ends.b == "Asia")) | ((ends.a == "Asia") & (ends.b == "Europe"))
    found = {
        "all rows and its own coordinates": tests,
        "all rows and the catalogue's coordinates": by_catalogue,
        DOUBTED_OUT: tests[~doubt],
        DOUBTED_OUT_CATALOGUE: by_catalogue[~doubt],
        f"only what lies inside the charts' axes ({CHART_KM:,.0f} km, {CHART_MS:.0f} ms)": tests[
            (tests.distance_km <= CHART_KM) & (tests.rtt_ms <= CHART_MS)
        ],
        "pairs of Europe with Asia left out": tests[~far],
        "pairs of Europe with Asia left out and the catalogue's coordinates": by_catalogue[~far],
    }
    clouds = tests.from_region.str.partition(":")[0] + "->" + tests.to_region.str.partition(":")[0]
    found |= {f"only {name}": tests[clouds == name] for name in sorted(clouds.unique())}
    for name in tests.run_id.value_counts().index:
        part = tests[tests.run_id == name]
        reach = f"{part.distance_km.min():,.0f} to {part.distance_km.max():,.0f} km"
        found[f"only its run {name} ({reach})"] = part
    if "started_at_utc" in tests:
        days = tests.started_at_utc.dt.strftime("%d %B %Y")
        found |= {f"only {day}": tests[days == day] for day in sorted(days.dropna().unique())}
    return {name: rows for name, rows in found.items() if len(rows) >= FEWEST_ROWS}


def _continents(catalogue: pd.DataFrame) -> dict[str, str]:
    found = {}
    for name, (south, north, west, east) in CONTINENTS.items():
        inside = catalogue.latitude_deg.between(south, north) & catalogue.longitude_deg.between(west, east)
        found |= dict.fromkeys(catalogue.name[inside], name)
    return found
