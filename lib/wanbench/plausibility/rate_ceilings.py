"""Throughput against the rate of the emulated link, and against what the sender's instance may send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from io import StringIO

import numpy as np
import pandas as pd

from ..errors import ParameterError
from ..formatting import count, number, quantity
from .rate_units import BYTES_FOR_BITS, TWICE
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
    "gate/instances.csv",
)
OVER = 1.05
FAR_OVER = 2.0
WORD = {LINK.name: "the link's rate", INSTANCE.name: "what the sender's instance may send"}
EXCHANGED = "from and to are exchanged in these rows: {} of the other end allows them"
OTHERWISE = "{} is not what is said, or the throughput is wrong or in another unit"
EIGHTH, FEWEST_FOR_EIGHTH = (0.105, 0.126), 10
MANY, FEWEST_FOR_COLUMN, FEWEST_EXCHANGED = 0.02, 2, 3


@dataclass(frozen=True)
class Column:
    """A column of rates: its table, the table's rows and their names, who sends, and the values in bit/s."""

    table: str
    frame: pd.DataFrame
    names: pd.Series
    name: str
    rate: pd.Series

    def row(
        self, rule: Rule, k: int, found: str, cause: str, bound: float, verdict: str = IMPOSSIBLE
    ) -> dict:
        """A flag of row k."""
        return rule.flag(
            self.table,
            "row",
            verdict,
            found,
            cause,
            row=self.names.iloc[k],
            from_region=self.frame.from_region.iloc[k],
            to_region=self.frame.to_region.iloc[k],
            column_name=self.name,
            value=float(self.rate.iloc[k]),
            bound=float(bound),
        )

    def whole(
        self, rule: Rule, found: str, cause: str, value: float, bound: float, verdict=IMPOSSIBLE
    ) -> dict:
        """A flag of the column."""
        return rule.flag(
            self.table, "column", verdict, found, cause, column_name=self.name, value=value, bound=bound
        )

    @property
    def sender(self) -> pd.Series:
        return self.frame.from_region.where(~self._reverse, self.frame.to_region)

    @property
    def receiver(self) -> pd.Series:
        return self.frame.to_region.where(~self._reverse, self.frame.from_region)

    def exchanged(self) -> Column:
        """The column, were from and to exchanged in every row."""
        ends = {"from_region": self.frame.to_region, "to_region": self.frame.from_region}
        return replace(self, frame=self.frame.assign(**ends))

    @property
    def _reverse(self) -> pd.Series:
        if "direction" not in self.frame:
            return pd.Series(False, index=self.frame.index)
        return (self.frame.direction == "reverse").fillna(False).astype(bool)


def link_rates(column: Column, links: pd.DataFrame | None) -> np.ndarray:
    """The rate of the emulated link that each row went over, in bit/s; NaN: none, or without a limit."""
    if links is None or not len(links):
        return np.full(len(column.frame), np.nan)
    known = links.dropna(subset="rate_bps").groupby(["from_region", "to_region"]).rate_bps.max().to_dict()
    ways = zip(column.sender, column.receiver, strict=True)
    return np.array([known.get(way, np.nan) for way in ways], dtype=float)


@cache
def known_instances() -> pd.DataFrame:
    """What the clouds say their instance types send: instance, cloud, egress_bps, note, source, as_of."""
    return pd.read_csv(StringIO(files(__package__).joinpath("instances.csv").read_text("utf-8")))


def instance_rates(column: Column, instances: Mapping | None, tests: pd.DataFrame | None) -> np.ndarray:
    """
    What each row's sender may send, in bit/s; NaN where nobody says.

    `instances` maps a cloud or a region to an instance type of `known_instances`, or to bit/s; where it says
    nothing, the setting of the row's test does, if that is "<machine> to <machine>".
    """
    given = _given(instances or {})
    rates = [given.get(name, given.get(str(name).partition(":")[0], np.nan)) for name in column.sender]
    rates = np.array(rates, dtype=float)
    told = _told(column, tests)
    return np.where(np.isnan(rates), told, rates)


def _given(instances: Mapping) -> dict[str, float]:
    known = known_instances().set_index("instance").egress_bps
    rates = {}
    for place, what in instances.items():
        if isinstance(what, str) and what in known.index:
            rates[place] = float(known[what])
        elif isinstance(what, (int, float)) and not isinstance(what, bool) and what > 0:
            rates[place] = float(what)
        else:
            raise ParameterError(
                f"instances: {place} is {what!r}; allowed are {', '.join(known.index)}, or bit/s above 0"
            )
    return rates


def _told(column: Column, tests: pd.DataFrame | None) -> np.ndarray:
    """By the settings of the tests."""
    nothing = np.full(len(column.frame), np.nan)
    if tests is None or "setting" not in tests or "test_id" not in column.frame or tests.setting.isna().all():
        return nothing
    known = known_instances().set_index("instance").egress_bps.to_dict()
    ends = tests.setting.fillna("").str.partition(" to ")
    rates = {}
    for k, way in ((0, "forward"), (2, "reverse")):
        said = ends[k].map(lambda text: next((known[w] for w in text.split() if w in known), np.nan))
        rates |= dict(
            zip(zip(tests.run_id, tests.test_id, [way] * len(tests), strict=True), said, strict=True)
        )
    ways = column._reverse.map({True: "reverse", False: "forward"})
    keys = zip(column.frame.run_id, column.frame.test_id, ways, strict=True)
    return np.array([rates.get(key, np.nan) for key in keys], dtype=float)


def check(rule: Rule, column: Column, most: np.ndarray, exchanged: np.ndarray, cause: str = "") -> list[dict]:
    """
    Flags of the rates above `most`, per row.

    Parameters
    ----------
    most, exchanged : ndarray
        The ceiling of each row, and what it were with from and to exchanged, in bit/s; NaN: none.
    cause : str
        What is known of the column already.
    """
    value = column.rate.to_numpy()
    known = np.isfinite(value) & np.isfinite(most)
    share = np.divide(value, most, out=np.full(len(value), np.nan), where=known)
    over = np.flatnonzero(share > OVER)
    n, what = int(known.sum()), WORD[rule.name]
    if not len(over):
        return _an_eighth(rule, column, share[known])
    least = OVER if rule is LINK else FAR_OVER
    flags = []
    of = f"{len(over):,} of {count(n, 'row')}"
    if len(over) >= FEWEST_EXCHANGED and (value <= OVER * exchanged)[over].all():
        cause = cause or EXCHANGED.format(what)
    if len(over) >= max(FEWEST_FOR_COLUMN, MANY * n):
        greatest = int(np.nanargmax(share))
        found = f"{column.name} exceeds {what} in {of}, by up to {number(share[greatest])} times"
        if np.nanmax(share) / 8 <= OVER:
            found += "; an eighth of it never does"
            cause = cause or TWICE
        ends = float(value[greatest]), float(most[greatest])
        verdict = IMPOSSIBLE if share[greatest] > least else SUSPECT
        flags.append(column.whole(rule, found, cause or OTHERWISE.format(what), *ends, verdict))
    for k in over:
        found = f"{quantity(value[k], 'bit/s')} where {what} is {quantity(most[k], 'bit/s')}"
        verdict = IMPOSSIBLE if share[k] > least else SUSPECT
        flags.append(column.row(rule, k, found, cause or OTHERWISE.format(what), most[k], verdict))
    return flags


def _an_eighth(rule: Rule, column: Column, share: np.ndarray) -> list[dict]:
    """A column that is everywhere the eighth of its ceiling that a saturated link shows in bytes."""
    if rule is not LINK or len(share) < FEWEST_FOR_EIGHTH:
        return []
    if ((share > EIGHTH[0]) & (share <= EIGHTH[1])).mean() < 0.9:
        return []
    middle = float(np.median(share))
    found = f"{column.name} is {number(middle)} of {WORD[rule.name]}, nearly the same in {count(len(share), 'row')}"
    return [column.whole(rule, found, BYTES_FOR_BITS, middle, 1.0, SUSPECT)]
