"""
Flag rows and tests that occur twice, directions copied to the opposite direction, and days copied under another date.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from wanbench.formatting import count

from .rate_units import rounding
from .rule import RULES, SUSPECT, TEST, Flag, Rule, row_names
from .summaries import decimals

COPIES = RULES["copies"]
MIRROR = RULES["mirror"]
# Measured values by table: rows that agree in them are copies.
VALUES = {
    "pings": ("min_rtt_ms", "mean_rtt_ms", "median_rtt_ms", "max_rtt_ms", "sd_rtt_ms", "p90_rtt_ms", "p95_rtt_ms",
              "p99_rtt_ms"),
    "transfers": ("throughput_bps", "sent_throughput_bps", "bytes", "duration_s", "min_rtt_ms", "mean_rtt_ms"),
}  # fmt: skip
COPIED = "the row was copied, or read twice; it is one measurement, not two"
MIN_VALUES = 3  # Independent rows of a pair almost never agree in three RTTs.
MIN_DIGITS = 7  # Independent rows almost never agree in a value of seven digits.
MIN_ECHOES = 5  # Two short tests may have the same few echoes by chance.
MIN_COPIES = 5  # The table is flagged if it has at least so many copies, and `COPIED_SHARE` of its rows are copies.
COPIED_SHARE = 0.1
SHARED_TIMES = 0.5  # If at least this share of equal times belongs to different rows, times are dates or rounds.
EXPECTED = 0.001  # Tests are copies if chance alone would make fewer equal tests than this per table.
MIRRORED_SHARE = 0.9  # Some rows of a mirrored table may have been corrected later.
MIN_PAIRS = 10  # Minimum of pairs for RTTs with one decimal (ms), a few of which are equal by chance.
MIN_PAIRS_FINE = 5  # Minimum of pairs for RTTs with two or more decimals.
MIN_PAIRS_WHOLE = 100  # Minimum of pairs for RTTs in whole ms, which are often equal by chance.
PAIR = ["from_region", "to_region"]


def check_copies(tables: Mapping[str, pd.DataFrame]) -> list[Flag]:
    """Flag every repetition of a row or test, and tables in which one direction is a copy of the opposite direction."""
    flags = []
    for table in VALUES:
        if table in tables and len(tables[table]) > 1:
            flags += _copies(table, tables[table]) + _mirrored(table, tables[table])
    if "echoes" in tables and len(tables["echoes"]) > 1:
        flags += _copied_tests(tables["echoes"])
    if "pairs" in tables and len(tables["pairs"]) > 1:
        pairs = tables["pairs"]
        flags += _copy_flags("pairs", pairs, pairs.duplicated(PAIR), "a second row for the pair")
    return flags


def _copies(table: str, frame: pd.DataFrame) -> list[Flag]:
    values = [name for name in VALUES[table] if name in frame and frame[name].notna().any()]
    if not values:
        return []
    keys = [*PAIR, "started_at_utc", *values]
    keys += ["direction"] if "direction" in frame else []
    given = frame[values].notna().sum(axis=1)
    rtts = [name for name in values if name.endswith("rtt_ms")]
    many = frame[rtts].notna().sum(axis=1) >= MIN_VALUES
    timed = frame.started_at_utc.notna() & (not _shared_times(frame, keys))
    telling = timed | ((many | (_digits(frame[values]) >= MIN_DIGITS)) & (not _coarse(frame, keys, values)))
    twice = frame.duplicated(keys) & telling & (given > 0) & frame[PAIR].notna().all(axis=1)
    return _copy_flags(table, frame, twice, "the same pair, time and values as an earlier row")


def _shared_times(frame: pd.DataFrame, keys: list[str]) -> bool:
    """Return whether rows with the same pair and time mostly differ, as if the times were dates or rounded."""
    shared = frame[frame.duplicated(keys[:3], keep=False) & frame.started_at_utc.notna()]
    different = shared.drop_duplicates(keys).groupby(keys[:3]).size() > 1
    return bool(len(different)) and bool(different.mean() >= SHARED_TIMES)


def _coarse(frame: pd.DataFrame, keys: list[str], values: list[str]) -> bool:
    """Return whether many rows agree in all values but one: the values then have too few digits to recognise copies."""
    if len(values) < 2:
        return False
    once = frame.drop_duplicates(keys)
    near = np.any([once.duplicated([name for name in keys if name != omitted]) for omitted in values], axis=0)
    return bool(near.sum() > min(len(frame) - len(once), COPIED_SHARE * len(once)))


def _digits(values: pd.DataFrame) -> pd.Series:
    """Return the number of digits of each row's first value, in units of its column's resolution."""
    columns = values.astype("float64")
    for name in columns:
        with np.errstate(over="ignore"):
            step = rounding((columns[name] * 1000).round(6)) / 1000
        columns[name] = columns[name] / step if step else columns[name]
    single = columns.bfill(axis=1).iloc[:, 0]
    return single.map(lambda value: len(f"{value:.15g}".replace(".", "").strip("0")), na_action="ignore")


def _copied_tests(echoes: pd.DataFrame) -> list[Flag]:
    frame = echoes[~echoes.duplicate & echoes.rtt_ms.notna()]
    sums = pd.util.hash_pandas_object(frame[["sequence", "rtt_ms"]].astype("float64"), index=False)
    groups = frame.assign(hash=sums.to_numpy(), n=1).groupby(TEST, sort=False, dropna=False)
    tests = groups.agg(hash=("hash", "sum"), n=("n", "sum"), first=("received_at_s", "min")).reset_index()
    twice = tests.duplicated([*PAIR, "hash", "n"]) & (tests.n >= MIN_ECHOES)
    if twice.any():
        twice &= _unlikely(frame, tests)
    rows = echoes[echoes.received_at_s.notna() & echoes.rtt_ms.notna() & ~echoes.duplicate]
    keys = [*PAIR, "sequence", "received_at_s", "rtt_ms"]
    inside = rows[rows.duplicated(keys)].groupby(TEST, sort=False, dropna=False).size()
    twice |= tests.set_index(TEST).index.isin(inside[inside >= MIN_ECHOES].index)
    return _copy_flags("echoes", tests, twice, "the same echoes as an earlier test")


def _unlikely(echoes: pd.DataFrame, tests: pd.DataFrame) -> pd.Series:
    """
    Return a mask of the tests whose echoes are unlikely to be repeated by chance.

    Two tests of a pair with n echoes agree with probability c^n, where c is the probability that two echoes of the pair
    are equal. c is the observed share of equal echoes, without copies; one equal pair is added, so that c is never 0.
    """
    first = tests.drop_duplicates([*PAIR, "hash", "n"])
    kept = pd.MultiIndex.from_frame(echoes[TEST]).isin(pd.MultiIndex.from_frame(first[TEST]))
    times = echoes[kept].groupby([*PAIR, "rtt_ms"]).size()
    equal = (times * (times - 1) / 2).groupby(PAIR).sum()
    n = times.groupby(PAIR).sum()
    agreement = ((equal + 1) / (n * (n - 1) / 2 + 1)).rename("agreement")
    chance = tests[PAIR].join(agreement, on=PAIR).agreement ** tests.n
    pairs = len(tests) * tests.groupby(PAIR).n.transform("size") / 2
    return chance * pairs < EXPECTED


def _copy_flags(table: str, frame: pd.DataFrame, twice: pd.Series, found: str) -> list[Flag]:
    names, n, flags = row_names(table, frame)[twice], int(twice.sum()), []
    if n >= MIN_COPIES and n > COPIED_SHARE * len(frame):
        rows = f"{n:,} of {count(len(frame), 'row')}: {found}"
        flags.append(COPIES.flag(table, "table", SUSPECT, rows, COPIED, value=n, bound=0))
    return flags + _row_flags(COPIES, table, frame[twice], names, found, COPIED)


def _row_flags(rule: Rule, table: str, rows: pd.DataFrame, names: pd.Series, found: str, cause: str) -> list[Flag]:
    named = zip(names, rows.from_region, rows.to_region, strict=True)
    return [
        rule.flag(table, "row", SUSPECT, f"{name}: {found}", cause, row=name, from_region=start, to_region=end)
        for name, start, end in named
    ]


def _mirrored(table: str, frame: pd.DataFrame) -> list[Flag]:
    flags = []
    for column in (name for name in VALUES[table] if name.endswith("rtt_ms")):
        if column not in frame or frame[column].notna().sum() < 2 * MIN_PAIRS_FINE:
            continue
        values = frame[column].astype("float64").groupby([frame.from_region, frame.to_region]).median()
        opposite = values.rename_axis(["to_region", "from_region"]).swaplevel().reindex(values.index)
        both = opposite.notna() & (values.index.get_level_values(0) < values.index.get_level_values(1))
        n, same = int(both.sum()), int((values == opposite)[both].sum())
        places = decimals(frame[column])
        min_pairs = {0: MIN_PAIRS_WHOLE, 1: np.inf}.get(places, MIN_PAIRS_FINE)
        mostly = places > 0 and n >= MIN_PAIRS and same >= MIRRORED_SHARE * n
        if mostly or (n >= min_pairs and same == n):
            found = f"{column}: both directions are equal in {same:,} of {count(n, 'pair')}"
            cause = "one direction was copied to the other: half of the rows were not measured"
            where = {"column_name": column, "value": same, "bound": MIRRORED_SHARE * n}
            flags.append(MIRROR.flag(table, "column", SUSPECT, found, cause, **where))
    return flags


COPIED_DAY = RULES["copied day"]
MIN_ROWS = 10  # Fewer rows can be equal by chance.
SHARE_OF_DAY = 0.9  # Some rows of a copied day may have been corrected or added later.
MIN_STEPS = 1000  # Values of less than so many steps of the resolution are often equal by chance.
MAX_EQUAL_DIRECTIONS = 0.5  # If so many pairs have equal values in both directions, they are often equal by chance.


def check_copied_days(tables: Mapping[str, pd.DataFrame]) -> list[Flag]:
    """
    Flag rows of pings and transfers whose values repeat those of the same pair at an earlier time, as if a day had been
    copied under another date. Also flag the table, once per difference in time.
    """
    long = [table for table in VALUES if table in tables and len(tables[table]) >= 2 * MIN_ROWS]
    return [flag for table in long for flag in _shifted(table, tables[table])]


def _shifted(table: str, frame: pd.DataFrame) -> list[Flag]:
    values = [name for name in VALUES[table] if name in frame and frame[name].notna().any()]
    frame = frame.assign(row=row_names(table, frame)).dropna(subset=[*PAIR, "started_at_utc"])
    timed = frame.dropna(subset=values, how="all").reset_index(drop=True)
    if timed.empty or not any(_has_fine_steps(timed[name]) for name in values) or _often_equal(timed, values):
        return []
    ends = [*PAIR, *(["direction"] if "direction" in timed else [])]
    first = timed.groupby([*ends, *values], dropna=False, sort=False).started_at_utc.transform("min")
    shift = timed.started_at_utc - first
    again = shift > pd.Timedelta(0)
    flags = []
    for distance, n in shift[again].value_counts().items():
        copies = timed[again & (shift == distance)]
        block = timed.started_at_utc.between(copies.started_at_utc.min(), copies.started_at_utc.max())
        if n < MIN_ROWS or n < SHARE_OF_DAY * block.sum():
            continue
        start = copies.started_at_utc.min()
        rows = count(int(block.sum()), "row")
        found = f"{n:,} of {rows} from {start:%Y-%m-%d} on have the values of the same pair {distance} earlier"
        cause = (
            f"what was measured on {start - distance:%Y-%m-%d} was copied under the date {start:%Y-%m-%d}: both are "
            "one measurement"
        )
        flags.append(COPIED_DAY.flag(table, "table", SUSPECT, found, cause, value=n, bound=0))
        found = f"the values of the same pair {distance} earlier"
        flags += _row_flags(COPIED_DAY, table, copies, copies.row, found, cause)
    return flags


def _has_fine_steps(values: pd.Series) -> bool:
    """Return whether a column's median is at least `MIN_STEPS` times the resolution."""
    positive = values.dropna().astype("float64")
    positive = positive[positive > 0]
    step = rounding(positive) or 10.0 ** -decimals(positive)
    return bool(len(positive)) and float(positive.median()) >= MIN_STEPS * step


def _often_equal(frame: pd.DataFrame, values: list[str]) -> bool:
    """Return whether the two directions of pairs, which are independent, often have equal values."""
    there = frame.drop_duplicates(PAIR).set_index(PAIR)[values]
    back = there.rename_axis(["to_region", "from_region"]).swaplevel().reindex(there.index)
    both = back.notna().any(axis=1)
    equal = (there.fillna(-1) == back.fillna(-1)).all(axis=1)
    return bool(both.any()) and float(equal[both].mean()) >= MAX_EQUAL_DIRECTIONS
