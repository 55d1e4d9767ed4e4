"""Throughput against the rate of the emulated link, and the limit of the sender's instance type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from io import StringIO

import numpy as np
import pandas as pd

from wanbench.checks import refusal
from wanbench.formatting import count, number, quantity

from .rate_units import BYTES_FOR_BITS, TIMES_EIGHT
from .rule import IMPOSSIBLE, SUSPECT, Rule

LINK = Rule(
    "link",
    "No throughput exceeds the rate of the link it went over.",
    "1.05 x the rate requested of the emulated link",
    "table links",
)
INSTANCE = Rule(
    "instance",
    "No throughput exceeds what the sender's instance may send.",
    "1.05 x the rate that the cloud states for the instance type: suspect, for that is a promise; twice the rate: "
    "impossible",
    "plausibility/instances.csv",
)
TOLERANCE = 1.05
"""A link's queue lets a short transfer exceed its rate by a little."""
FAR_ABOVE = 2.0
"""Clouds promise the rate of an instance at least; some send a little more, none twice as much."""
CEILING = {LINK.name: "the link's rate", INSTANCE.name: "what the sender's instance may send"}
EXCHANGED = "from and to are exchanged in these rows: {} of the other end allows them"
OTHERWISE = "{} is not as stated, or the throughput is wrong or in another unit"
EIGHTH = (0.105, 0.126)
"""84 to 101 % of an eighth: a saturated link, less its headers, in bytes."""
MIN_ROWS_EIGHTH = 10
"""Fewer rows show an eighth by chance."""
COLUMN_SHARE = 0.02
"""From this share of the rows on, and at least `MIN_ROWS_OF_COLUMN` rows, the column is flagged too."""
MIN_ROWS_OF_COLUMN = 2
MIN_ROWS_EXCHANGED = 3
"""Fewer rows may fit the opposite direction by chance."""


@dataclass(frozen=True)
class Column:
    """A column of rates: its table, the table's rows and their names, the column's name, and its values in bit/s."""

    table: str
    frame: pd.DataFrame
    names: pd.Series
    name: str
    rate: pd.Series

    def row(self, rule: Rule, k: int, found: str, cause: str, bound: float, verdict: str = IMPOSSIBLE) -> dict:
        """A flag of row k."""
        row, start, end, value = (values[k] for values in self._of_rows)
        where = {"row": row, "from_region": start, "to_region": end, "column_name": self.name, "value": value}
        return rule.flag(self.table, "row", verdict, found, cause, **where, bound=float(bound))

    @cached_property
    def _of_rows(self) -> tuple[list, ...]:
        """Name, ends and value of each row."""
        columns = (self.names, self.frame.from_region, self.frame.to_region, self.rate)
        return tuple(column.tolist() for column in columns)

    def whole(self, rule: Rule, found: str, cause: str, value: float, bound: float, verdict=IMPOSSIBLE) -> dict:
        """A flag of the column."""
        where = {"column_name": self.name, "value": value, "bound": bound}
        return rule.flag(self.table, "column", verdict, found, cause, **where)

    @property
    def sender(self) -> pd.Series:
        return self.frame.from_region.where(~self._reverse, self.frame.to_region)

    @property
    def receiver(self) -> pd.Series:
        return self.frame.to_region.where(~self._reverse, self.frame.from_region)

    def exchanged(self) -> Column:
        """The column with from and to exchanged in every row."""
        ends = {"from_region": self.frame.to_region, "to_region": self.frame.from_region}
        return replace(self, frame=self.frame.assign(**ends))

    @property
    def _reverse(self) -> pd.Series:
        if "direction" not in self.frame:
            return pd.Series(False, index=self.frame.index)
        return (self.frame.direction == "reverse").fillna(False).astype(bool)


def link_rates(column: Column, links: pd.DataFrame | None) -> np.ndarray:
    """The rate of each row's emulated link in bit/s; NaN where there is no link, or no limit."""
    if links is None or not len(links):
        return np.full(len(column.frame), np.nan)
    rates = links.dropna(subset="rate_bps").groupby(["from_region", "to_region"]).rate_bps.max().to_dict()
    ways = zip(column.sender, column.receiver, strict=True)
    return np.array([rates.get(way, np.nan) for way in ways], dtype=float)


@cache
def known_instances() -> pd.DataFrame:
    """Published rates of instance types: instance, cloud, egress_bps, note, source, as_of."""
    return pd.read_csv(StringIO(files(__package__).joinpath("instances.csv").read_text("utf-8")))


def instance_rates(column: Column, instances: Mapping | None, tests: pd.DataFrame | None) -> np.ndarray:
    """
    The rate limit of each row's sender, in bit/s; NaN if unknown.

    `instances` maps a cloud or a region to an instance type of `known_instances`, or to bit/s. For other rows the
    instance type comes from the setting of the test, if that is "<machine> to <machine>".
    """
    given = _checked(instances or {})
    rates = [given.get(name, given.get(str(name).partition(":")[0], np.nan)) for name in column.sender]
    rates = np.array(rates, dtype=float)
    return np.where(np.isnan(rates), _by_setting(column, tests), rates)


def _checked(instances: Mapping) -> dict[str, float]:
    """The rates of instances; ParameterError for an unknown instance type or a rate that is not positive."""
    egress_bps = known_instances().set_index("instance").egress_bps
    rates = {}
    for place, instance in instances.items():
        if isinstance(instance, str) and instance in egress_bps.index:
            rates[place] = float(egress_bps[instance])
        elif isinstance(instance, (int, float)) and not isinstance(instance, bool) and instance > 0:
            rates[place] = float(instance)
        else:
            allowed = f"{', '.join(egress_bps.index)}, or bit/s above 0"
            raise refusal(f"instance of {place}", instance, allowed)
    return rates


def _by_setting(column: Column, tests: pd.DataFrame | None) -> np.ndarray:
    """The rate of each row's sender by its test's setting, in bit/s; NaN if that names no instance type."""
    if tests is None or "setting" not in tests or "test_id" not in column.frame or tests.setting.isna().all():
        return np.full(len(column.frame), np.nan)
    egress_bps = known_instances().set_index("instance").egress_bps.to_dict()
    ends = tests.setting.fillna("").str.partition(" to ")
    rates = {}
    for k, way in ((0, "forward"), (2, "reverse")):
        for run, test, text in zip(tests.run_id, tests.test_id, ends[k], strict=True):
            named = (egress_bps[word] for word in text.split() if word in egress_bps)
            rates[run, test, way] = next(named, np.nan)
    ways = column._reverse.map({True: "reverse", False: "forward"})
    keys = zip(column.frame.run_id, column.frame.test_id, ways, strict=True)
    return np.array([rates.get(key, np.nan) for key in keys], dtype=float)


def check(rule: Rule, column: Column, ceiling: np.ndarray, exchanged: np.ndarray, cause: str = "") -> list[dict]:
    """
    Flags of the rates above a ceiling, per row and of the column.

    Parameters
    ----------
    ceiling, exchanged : ndarray
        The ceiling of each row, and the ceiling with from and to exchanged, in bit/s; NaN where there is none.
    cause : str
        The cause of an earlier flag of the column, "" without one.
    """
    value = column.rate.to_numpy()
    comparable = np.isfinite(value) & np.isfinite(ceiling)
    share = np.divide(value, ceiling, out=np.full(len(value), np.nan), where=comparable)
    over = np.flatnonzero(share > TOLERANCE)
    n, what = int(comparable.sum()), CEILING[rule.name]
    if not len(over):
        return _an_eighth(rule, column, share[comparable])
    limit = TOLERANCE if rule is LINK else FAR_ABOVE
    flags = []
    if len(over) >= MIN_ROWS_EXCHANGED and (value <= TOLERANCE * exchanged)[over].all():
        cause = cause or EXCHANGED.format(what)
    if len(over) >= max(MIN_ROWS_OF_COLUMN, COLUMN_SHARE * n):
        largest = int(np.nanargmax(share))
        rows, times = f"{len(over):,} of {count(n, 'row')}", number(share[largest])
        found = f"{column.name} exceeds {what} in {rows}, by up to {times} times"
        if np.nanmax(share) / 8 <= TOLERANCE:
            found += "; an eighth of it never does"
            cause = cause or TIMES_EIGHT
        ends = float(value[largest]), float(ceiling[largest])
        verdict = IMPOSSIBLE if share[largest] > limit else SUSPECT
        flags.append(column.whole(rule, found, cause or OTHERWISE.format(what), *ends, verdict))
    for k in over:
        found = f"{quantity(value[k], 'bit/s')} where {what} is {quantity(ceiling[k], 'bit/s')}"
        verdict = IMPOSSIBLE if share[k] > limit else SUSPECT
        flags.append(column.row(rule, k, found, cause or OTHERWISE.format(what), ceiling[k], verdict))
    return flags


def _an_eighth(rule: Rule, column: Column, share: np.ndarray) -> list[dict]:
    """A flag of a column that is an eighth of its ceiling in nearly all rows: a saturated link in bytes."""
    if rule is not LINK or len(share) < MIN_ROWS_EIGHTH:
        return []
    if ((share > EIGHTH[0]) & (share <= EIGHTH[1])).mean() < 0.9:
        return []
    middle = float(np.median(share))
    found = f"{column.name} is {number(middle)} of {CEILING[rule.name]}, nearly the same in {count(len(share), 'row')}"
    return [column.whole(rule, found, BYTES_FOR_BITS, middle, 1.0, SUSPECT)]
