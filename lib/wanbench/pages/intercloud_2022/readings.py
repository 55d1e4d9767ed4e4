"""Read published rows in several ways, where the source does not say which: a column of rates in several units, and a
correlation over several selections of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

import numpy as np
import pandas as pd

from wanbench.checks import FEWEST_RESAMPLES, check_choice
from wanbench.errors import ParameterError
from wanbench.formatting import count, number, quantity
from wanbench.methods.distance.straight_lines import fit_rtt, fit_throughput
from wanbench.methods.result import Estimate, Result, RowsResult
from wanbench.regions import cloud_title

# Boxes of latitude (from, to) and longitude (from, to), in degrees
CONTINENTS = {"Europe": (35.0, 72.0, -12.0, 42.0), "Asia": (-11.0, 55.0, 60.0, 150.0)}
OWN = "all rows, the survey's coordinates"
CATALOGUE = "all rows, catalogue coordinates"
UNFLAGGED = "flagged regions left out"
UNFLAGGED_CATALOGUE = "flagged regions left out, catalogue coordinates"
NO_EUROPE_ASIA = "Europe-Asia left out"
NO_EUROPE_ASIA_CATALOGUE = "Europe-Asia left out, catalogue coordinates"
MIN_ROWS = 100  # A smaller selection cannot be the published chart, which has some 500 to 2,000 points
CHART_KM = 17_000.0  # End of the distance axis of the published charts
CHART_MS = 300.0  # End of the RTT axis of the published charts
QUANTITIES = {"rtt_ms": "RTT", "throughput_bps": "Log throughput"}
R_DECIMALS = 3  # One digit more than published correlations have, so that a reader can check the rounding


@dataclass(frozen=True, repr=False)
class UnitReadings(RowsResult):
    """
    A column of rates, read in several units and compared with the maximum rate of the senders.

    rows: One row per reading (unit) and sender (cloud): reading, sender, n, max_bps, limit_bps, n_above (values above
        the limit), share_of_limit (max_bps over limit_bps).
    step: The greatest common divisor of the values; 1 if they are not whole numbers.
    """

    column: str
    step: int

    @property
    def possible(self) -> list[str]:
        """The readings in which no value exceeds its sender's limit."""
        n_above = self.rows.groupby("reading", sort=False).n_above.sum()
        return n_above.index[n_above == 0].tolist()

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        n = int(self.rows.groupby("reading").n.sum().max())
        names = f"possible readings of {self.column}", f"{self.column} has {{}}"
        method = "every value, read in each unit, against the maximum rate of the sender's instance type"
        assumption, basis = "The senders were of the stated instance types, and their limits hold", count(n, "value")
        numbers = len(self.possible), nan, nan
        unit = "possible reading" if len(self.possible) == 1 else "possible readings"
        return (Estimate(*names, *numbers, unit, n, method, assumption, basis),)

    @property
    def sentence(self) -> str:
        parts = []
        for reading, part in self.rows.groupby("reading", sort=False):
            worst = part.loc[part.share_of_limit.idxmax()]
            parts.append(
                f"Read as {reading}, {count(int(part.n_above.sum()), 'row')} would exceed the maximum rate of the "
                f"sender (at worst {quantity(worst.max_bps, 'bit/s')} from {cloud_title(worst.sender)}, "
                f"{number(worst.share_of_limit, 2)} times the limit of {quantity(worst.limit_bps, 'bit/s')})"
            )
        of_blocks = f" Every value is a multiple of {self.step:,}, like a count of bytes sent in blocks."
        step = of_blocks if self.step > 1 else ""
        possible = " or ".join(self.possible) or "none of these"
        return f"{'. '.join(parts)}. So the column {self.column} can be read as {possible}.{step}"

    def formatted_table(self) -> pd.DataFrame:
        rows = self.rows
        columns = {"Read as": rows.reading, "Sender": rows.sender, "n": rows.n.map("{:,}".format)}
        columns["Maximum"] = [quantity(value, "bit/s") for value in rows.max_bps]
        columns["Limit of the instance"] = [quantity(value, "bit/s") for value in rows.limit_bps]
        return pd.DataFrame(columns | {"Rows above it": rows.n_above.map("{:,}".format)})


def unit_readings(
    values: pd.Series, senders: pd.Series, limits_bps: Mapping[str, float], factors: Mapping[str, float]
) -> UnitReadings:
    """
    Read a column of rates in several units, and compare each reading with the maximum rate of the senders.

    `senders` has the sending cloud of each value, `limits_bps` the maximum rate of each cloud's instance type.
    `factors` maps each reading to the factor that converts a value to bit/s: {"bytes/s": 8, "bit/s": 1}.
    """
    used = pd.DataFrame({"value": values.astype("float64"), "sender": senders}).dropna()
    missing = sorted(set(used.sender) - set(limits_bps))
    if missing:
        raise ParameterError(f"limits_bps lacks {', '.join(missing)}; it has {', '.join(limits_bps) or 'none'}.")
    rows = []
    for reading, factor in factors.items():
        for sender, part in used.groupby("sender"):
            rates, limit = part.value * factor, float(limits_bps[sender])
            most, n_above = rates.max(), int((rates > limit).sum())
            rows.append((reading, sender, len(part), most, limit, n_above, most / limit))
    columns = ["reading", "sender", "n", "max_bps", "limit_bps", "n_above", "share_of_limit"]
    return UnitReadings(pd.DataFrame(rows, columns=columns), str(values.name), _step(used.value.to_numpy()))


def _step(values: np.ndarray) -> int:
    """
    Return the greatest common divisor; 1 if a value is not a whole number, or is too large to be exact as a float.
    """
    if not len(values) or (values != np.round(values)).any() or np.abs(values).max() >= 2**53:
        return 1
    return max(int(np.gcd.reduce(values.astype("int64"))), 1)


def row_selections(
    tests: pd.DataFrame, catalogue: pd.DataFrame, flagged: tuple[str, ...] = ()
) -> dict[str, pd.DataFrame]:
    """
    Select rows of `tests` in several ways: by coordinates, region, cloud, run and day.

    Returns every selection of at least 100 rows, by its label. `tests` has distance_km from the survey's coordinates,
    and distance_catalogue_km from those of `catalogue`, a table `regions`. `flagged` names the regions whose
    coordinates the plausibility rules flag.
    """
    by_catalogue = tests.assign(distance_km=tests.distance_catalogue_km)
    is_flagged = tests.from_region.isin(flagged) | tests.to_region.isin(flagged)
    continent = {}
    for name, (south, north, west, east) in CONTINENTS.items():
        boxed = catalogue.latitude_deg.between(south, north) & catalogue.longitude_deg.between(west, east)
        continent |= dict.fromkeys(catalogue.name[boxed], name)
    ends = tests.from_region.map(continent), tests.to_region.map(continent)
    apart = ((ends[0] == "Europe") & (ends[1] == "Asia")) | ((ends[0] == "Asia") & (ends[1] == "Europe"))
    inside = (tests.distance_km <= CHART_KM) & (tests.rtt_ms <= CHART_MS)
    selections = {OWN: tests, CATALOGUE: by_catalogue, UNFLAGGED: tests[~is_flagged]}
    selections[UNFLAGGED_CATALOGUE] = by_catalogue[~is_flagged]
    selections[f"inside the charts' axes ({CHART_KM:,.0f} km, {CHART_MS:.0f} ms)"] = tests[inside]
    selections |= {NO_EUROPE_ASIA: tests[~apart], NO_EUROPE_ASIA_CATALOGUE: by_catalogue[~apart]}
    clouds = tests.from_region.str.partition(":")[0] + "->" + tests.to_region.str.partition(":")[0]
    selections |= {f"only {name}": tests[clouds == name] for name in sorted(clouds.unique())}
    for name in tests.run_id.value_counts().index:
        part = tests[tests.run_id == name]
        range_km = f"{part.distance_km.min():,.0f} to {part.distance_km.max():,.0f} km"
        selections[f"only run {name} ({range_km})"] = part
    if "started_at_utc" in tests:
        days = tests.started_at_utc.dt.strftime("%d %B %Y")
        selections |= {f"only {day}": tests[days == day] for day in sorted(days.dropna().unique())}
    return {label: rows for label, rows in selections.items() if len(rows) >= MIN_ROWS}


@dataclass(frozen=True, repr=False)
class Correlations(Result):
    """
    The correlation of a column with distance over each selection of rows.

    rows: One row per selection: selection, n_rows (with a distance and a positive value), n_regions, r_rows (over the
        rows as published, with repeats and both directions as separate points), reproduces (r_rows, or r over unordered
        pairs, rounds to the claimed value).
    """

    column: str
    claimed: float
    rows: pd.DataFrame

    @property
    def closest(self) -> pd.Series:
        """The selection whose r_rows is nearest to the claimed correlation."""
        return self.table().iloc[0]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        first, name = self.rows.iloc[0], QUANTITIES[self.column]
        n, n_regions = int(first.n_rows), int(first.n_regions)
        names = f"correlation of {name} with distance over rows", f"{name} correlates with distance at r = {{}}"
        method = "Pearson's r over the published rows, each taken as one observation, as in the source"
        assumption, basis = "Among many selections, some reproduce a number by chance", count(n, "row")
        return (Estimate(*names, first.r_rows, nan, nan, "", n, method, assumption, basis, n_regions),)

    @property
    def sentence(self) -> str:
        name, first, closest = QUANTITIES[self.column], self.rows.iloc[0], self.closest
        matches = ", ".join(f"“{name}”" for name in self.rows.selection[self.rows.reproduces])
        return (
            f"{name} against distance: r = {number(first.r_rows, R_DECIMALS)} for “{first.selection}” "
            f"({count(int(first.n_rows), 'row')}), where r = {self.claimed:g} is claimed. Of "
            f"{count(len(self.rows), 'selection')} of rows, “{closest.selection}” comes nearest, with r = "
            f"{number(closest.r_rows, R_DECIMALS)}. Selections whose r rounds to the claimed value: "
            f"{matches or 'none'}."
        )

    def table(self) -> pd.DataFrame:
        return self.rows.iloc[(self.rows.r_rows - self.claimed).abs().argsort(kind="stable")]


def correlations(selections: Mapping[str, pd.DataFrame], claimed: float, *, column: str = "rtt_ms") -> Correlations:
    """
    Correlate RTT, or the logarithm of throughput, with distance over each of `selections`.

    The first selection has all rows as published. `claimed` is the published correlation; its number of decimals
    decides which correlations round to it.
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
        off_by = min(abs(r_rows - claimed), abs(pearson.estimate - claimed))
        reproduces = bool(off_by <= half_step * (1 + 1e-9))
        rows.append((label, len(used), pearson.n_regions, r_rows, reproduces))
    table = pd.DataFrame(rows, columns=["selection", "n_rows", "n_regions", "r_rows", "reproduces"])
    if not np.isfinite(table.r_rows).any():
        raise ParameterError(f"no selection has a correlation: {column} or distance_km does not vary")
    return Correlations(column, claimed, table)
