"""Rows that stand twice, and matrices whose two directions are one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ..formatting import count
from .observations import TEST, row_names
from .rate_units import rounding
from .rule import SUSPECT, Rule
from .summaries import decimals

COPIES = Rule(
    "copies",
    "No two measurements are the same in everything.",
    "same pair, same time and the same values; without a time, or where most rows share theirs with others, the same "
    "in at least three values, or in one of seven digits, and more such rows than agree in all values but one; two "
    "tests of the same echoes, five or more, if by chance fewer than 0.001 of the table's would agree so",
    "the chance that independent measurements agree in so many digits",
)
MIRROR = Rule(
    "mirror",
    "The two directions of a pair are measured apart, and differ in the last digits.",
    "both directions equal in 90 % of at least 10 pairs given to a tenth of a ms; in all of at least 5, where given to "
    "a hundredth, and of at least 100, where given in whole ms",
    "the chance that independent measurements agree in so many digits",
)
VALUES = {
    "pings": ("min_rtt_ms", "mean_rtt_ms", "median_rtt_ms", "max_rtt_ms", "sd_rtt_ms", "p90_rtt_ms", "p95_rtt_ms",
              "p99_rtt_ms"),
    "transfers": ("throughput_bps", "sent_throughput_bps", "bytes", "duration_s", "min_rtt_ms", "mean_rtt_ms"),
}  # fmt: skip
COPIED = "the row was copied, or read twice; it is one measurement, not two"
FEWEST_VALUES, FEWEST_DIGITS, FEWEST_ECHOES = 3, 7, 5
FEWEST_COPIES, MANY, HALF = 5, 0.1, 0.5
EXPECTED, FEWEST_FINE = 0.001, 5
PAIR = ["from_region", "to_region"]


def check(tables: Mapping[str, pd.DataFrame]) -> list[dict]:
    """Flags of copies (the second and later of each) and of mirrored tables."""
    flags = []
    for table in VALUES:
        if table in tables and len(tables[table]) > 1:
            flags += _copies(table, tables[table]) + _mirrored(table, tables[table])
    if "echoes" in tables and len(tables["echoes"]) > 1:
        flags += _copied_tests(tables["echoes"])
    if "pairs" in tables and len(tables["pairs"]) > 1:
        flags += _repeated_pairs(tables["pairs"])
    return flags


def _copies(table, frame) -> list[dict]:
    values = [name for name in VALUES[table] if name in frame and frame[name].notna().any()]
    if not values:
        return []
    keys = ["from_region", "to_region", "started_at_utc", *values]
    keys += ["direction"] if "direction" in frame else []
    given = frame[values].notna().sum(axis=1)
    rtts = [name for name in values if name.endswith("rtt_ms")]
    many = frame[rtts].notna().sum(axis=1) >= FEWEST_VALUES
    timed = frame.started_at_utc.notna() & ~_shared_times(frame, keys)
    telling = timed | ((many | (_digits(frame[values]) >= FEWEST_DIGITS)) & ~_coarse(frame, keys, values))
    twice = frame.duplicated(keys) & telling & (given > 0) & frame.from_region.notna()
    return _flags(
        table, frame, row_names(table, frame), twice, "the same pair, time and values as an earlier row"
    )


def _shared_times(frame, keys) -> bool:
    """Whether a pair's rows of one time mostly differ: a time that is a date, or that of a whole round."""
    shared = frame[frame.duplicated(keys[:3], keep=False) & frame.started_at_utc.notna()]
    different = shared.drop_duplicates(keys).groupby(keys[:3]).size() > 1
    return bool(len(different)) and bool(different.mean() >= HALF)


def _coarse(frame, keys, values) -> bool:
    """Whether rows that differ agree in all values but one, and not fewer than copies are: few digits do so."""
    if len(values) < 2:
        return False
    once = frame.drop_duplicates(keys)
    near = np.zeros(len(once), bool)
    for left_out in values:
        near |= once.duplicated([name for name in keys if name != left_out]).to_numpy()
    return bool(near.sum() > min(len(frame) - len(once), MANY * len(once)))


def _digits(values: pd.DataFrame) -> pd.Series:
    """How many digits the first value of each row has, counted in the steps of its column."""
    columns = values.astype("float64")
    for name in columns:
        with np.errstate(over="ignore"):
            step = rounding((columns[name] * 1000).round(6)) / 1000
        columns[name] = columns[name] / step if step else columns[name]
    single = columns.bfill(axis=1).iloc[:, 0]
    return single.map(lambda value: len(f"{value:.15g}".replace(".", "").strip("0")), na_action="ignore")


def _copied_tests(echoes) -> list[dict]:
    """Tests whose echoes are those of an earlier test of the same pair, one by one."""
    frame = echoes[~echoes.duplicate & echoes.rtt_ms.notna()]
    sums = pd.util.hash_pandas_object(frame[["sequence", "rtt_ms"]].astype("float64"), index=False)
    groups = frame.assign(hash=sums.to_numpy(), n=1).groupby(TEST, sort=False, dropna=False)
    tests = groups.agg(hash=("hash", "sum"), n=("n", "sum"), first=("received_at_s", "min")).reset_index()
    twice = tests.duplicated(["from_region", "to_region", "hash", "n"]) & (tests.n >= FEWEST_ECHOES)
    if twice.any():
        twice &= _telling(frame, tests)
    rows = echoes[echoes.received_at_s.notna() & echoes.rtt_ms.notna() & ~echoes.duplicate]
    keys = ["from_region", "to_region", "sequence", "received_at_s", "rtt_ms"]
    inside = rows[rows.duplicated(keys)].groupby(TEST, sort=False, dropna=False).size()
    if len(inside):
        marked = tests.set_index(TEST).index.isin(inside[inside >= FEWEST_ECHOES].index)
        twice |= marked
    return _flags("echoes", tests, row_names("echoes", tests), twice, "echoes that an earlier test has too")


def _telling(echoes, tests) -> pd.Series:
    """
    Tests whose echoes another would hardly have by chance: c^n of those of its pair, where c is the chance that two
    echoes of the pair are equal (of tests that are not copies, with one more equal than there are).
    """
    first = tests.drop_duplicates(["from_region", "to_region", "hash", "n"])
    kept = pd.MultiIndex.from_frame(echoes[TEST]).isin(pd.MultiIndex.from_frame(first[TEST]))
    times = echoes[kept].groupby([*PAIR, "rtt_ms"]).size()
    equal = (times * (times - 1) / 2).groupby(PAIR).sum()
    n = times.groupby(PAIR).sum()
    alike = ((equal + 1) / (n * (n - 1) / 2 + 1)).rename("alike")
    chance = tests[PAIR].join(alike, on=PAIR).alike ** tests.n
    pairs = len(tests) * tests.groupby(PAIR).n.transform("size") / 2
    return chance * pairs < EXPECTED


def _repeated_pairs(pairs) -> list[dict]:
    twice = pairs.duplicated(["from_region", "to_region"])
    return _flags("pairs", pairs, row_names("pairs", pairs), twice, "a second row for the pair")


def _flags(table, frame, names, twice, found) -> list[dict]:
    places = np.flatnonzero(twice)
    flags = []
    if len(places) >= FEWEST_COPIES and len(places) > MANY * len(frame):
        what = f"{len(places):,} of {count(len(frame), 'row')}: {found}"
        flags.append(COPIES.flag(table, "table", SUSPECT, what, COPIED, value=len(places), bound=0))
    for k in places:
        flags.append(
            COPIES.flag(
                table,
                "row",
                SUSPECT,
                f"{names.iloc[k]}: {found}",
                COPIED,
                row=names.iloc[k],
                from_region=frame.from_region.iloc[k],
                to_region=frame.to_region.iloc[k],
            )
        )
    return flags


def _mirrored(table, frame) -> list[dict]:
    flags = []
    for column in (name for name in VALUES[table] if name.endswith("rtt_ms")):
        if column not in frame or frame[column].notna().sum() < 2 * FEWEST_FINE:
            continue
        values = frame[column].astype("float64").groupby([frame.from_region, frame.to_region]).median()
        opposite = values.rename_axis(["to_region", "from_region"]).swaplevel().reindex(values.index)
        both = opposite.notna() & (values.index.get_level_values(0) < values.index.get_level_values(1))
        n, same = int(both.sum()), int((values == opposite)[both].sum())
        places = decimals(frame[column])
        all_of = 100 if not places else FEWEST_FINE if places > 1 else np.inf
        if (places and n >= 10 and same >= 0.9 * n) or (n >= all_of and same == n):
            found = f"{column}: both directions are equal in {same:,} of {count(n, 'pair')}"
            cause = "one direction was copied to the other: half of the rows are no measurements"
            flags.append(
                MIRROR.flag(
                    table, "column", SUSPECT, found, cause, column_name=column, value=same, bound=0.9 * n
                )
            )
    return flags
