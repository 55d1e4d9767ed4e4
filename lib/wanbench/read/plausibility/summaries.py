"""Flag impossible summaries: percentiles out of order, wrong spreads, totals that contradict their intervals."""

from collections.abc import Mapping
from itertools import chain, pairwise

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, quantity

from .rule import IMPOSSIBLE, RULES, SUSPECT, Column, Flag, row_names

SUMMARY = RULES["summary"]
# Columns, by table, whose values cannot decrease from left to right.
ORDER = {
    "pings": (
        ("min_rtt_ms", "median_rtt_ms", "p90_rtt_ms", "p95_rtt_ms", "p99_rtt_ms", "max_rtt_ms"),
        ("min_rtt_ms", "mean_rtt_ms", "max_rtt_ms"),
        ("n_lost", "n_sent"),
    ),
    "transfers": (("min_rtt_ms", "mean_rtt_ms", "max_rtt_ms"), ("lost_packets", "packets")),
    "pairs": (("n_lost", "n_echoes"),),
}
COLUMN_SHARE = 0.9  # If this share of rows is wrong, the columns are exchanged or misnamed.
MIN_ROWS_OF_COLUMN = 5  # Fewer rows do not suffice to flag a column.
MAX_DECIMALS = 6  # Nanoseconds, for values in ms: no tool measures more finely.
DECIMALS_SHARE = 1 / 3  # Values that end in 0 have fewer decimals than their column.
CUT_MS = 0.001  # ping truncates its mean to whole microseconds before it computes mdev.
THOUSAND = 1000
# A table of totals, the table of their intervals, the columns that identify a total in its file, and for each column of
# totals how its lower bound follows from the intervals.
PARTS = (
    ("producers", "producer_windows", ["producer"], {"records": "sum", "max_latency_ms": "max"}),
    ("consumers", "consumer_windows", ["consumer"], {"records": "max"}),
    ("quantiles", "quantiles of windows", ["what", "quantile"], {"latency_ms": "min"}),
)
# iperf3 reads the clock separately for intervals and total; in 78 files they differ by at most 0.2 %.
MAX_ABOVE_INTERVALS = 1.01
OMITTED = "the total includes omitted intervals, as in old versions of iperf3 with -O, or belongs to another test"
MIN_COVERED = 0.8  # If intervals cover less of the transfer's time, the rest may have had another rate.


def check_summaries(tables: Mapping[str, pd.DataFrame]) -> list[Flag]:
    """Flag rows with impossible summaries, and columns that seem to be exchanged."""
    flags = []
    for table, orders in ORDER.items():
        if table not in tables or tables[table].empty:
            continue
        frame = tables[table]
        names = row_names(table, frame)
        used = [[name for name in order if name in frame and frame[name].notna().any()] for order in orders]
        for low, high in dict.fromkeys(chain.from_iterable(map(pairwise, used))):
            flags += _out_of_order(table, frame, names, low, high)
        if table == "pings":
            flags += _spread(frame, names)
    return flags + _against_intervals(tables) + _against_parts(tables)


def _against_intervals(tables: Mapping[str, pd.DataFrame]) -> list[Flag]:
    """Flag transfers whose rate exceeds the rate over their intervals, leaving out omitted intervals."""
    if not {"transfers", "intervals"} <= set(tables):
        return []
    frame, by = tables["transfers"], ["run_id", "source_file", "direction"]
    rows = tables["intervals"]
    counted = {name: rows[name].where(~rows.omitted) for name in ("start_s", "end_s")}
    rows = rows.assign(carried=rows.bytes.where(~rows.omitted), left_out=rows.bytes.where(rows.omitted), **counted)
    sums = {"carried": "sum", "left_out": "sum", "start_s": "min", "end_s": "max"}
    sums = rows.groupby(by, dropna=False, sort=False).agg(sums).reset_index()
    sums = frame[by].merge(sums, on=by, how="left").set_index(frame.index)
    length, forward = sums.end_s - sums.start_s, frame.direction == "forward"
    carried, left_out = sums.carried.astype("float64"), sums.left_out.astype("float64")
    comparable = frame.error.isna() & ~frame.duplicated(by, keep=False)
    comparable &= length >= MIN_COVERED * frame.duration_s
    # Data in flight at the end of the omitted time arrive later; they are less than half of the omitted data.
    own = (MAX_ABOVE_INTERVALS - 1) * carried
    there = np.maximum(own, (left_out / 2).where(left_out > 0))
    names, flags = row_names("transfers", frame), []
    for column, extra in (("sent_throughput_bps", own.where(forward)), ("throughput_bps", own.mask(forward, there))):
        rate = frame[column]
        for k in np.flatnonzero(comparable & (rate > 8 * (carried + extra) / length)):
            bound = float(8 * carried.iloc[k] / length.iloc[k])
            rates = quantity(rate.iloc[k], "bit/s"), quantity(bound, "bit/s")
            found = ", but its intervals, without omitted ones, have ".join(rates)
            flags.append(Column("transfers", frame, names, column, rate).row(SUMMARY, k, found, OMITTED, bound))
    return flags


def _against_parts(tables: Mapping[str, pd.DataFrame]) -> list[Flag]:
    if "quantiles" in tables:
        quantiles = tables["quantiles"]
        parts = quantiles.window.notna()
        tables = {**tables, "quantiles": quantiles[~parts], "quantiles of windows": quantiles[parts]}
    flags = []
    for table, part, which, columns in PARTS:
        if table not in tables or part not in tables:
            continue
        frame, by = tables[table], ["run_id", "source_file", *which]
        bounds = tables[part].groupby(by, dropna=False, sort=False).agg(columns).reset_index()
        bounds = frame[by].merge(bounds, on=by, how="left").set_index(frame.index)
        names = row_names(table, frame)
        for column in columns:
            total = frame[column].astype("float64")
            largest = total.groupby([frame[name] for name in by], dropna=False).transform("max")
            bound = bounds[column].astype("float64")
            for k in np.flatnonzero((total == largest) & (total < bound - _rounding(total, bound))):
                found = f"{column} is {number(total.iloc[k])}, and its intervals have {number(bound.iloc[k])}"
                cause = "a total of another run, or a file in which lines of several runs are mixed"
                flags.append(Column(table, frame, names, column, total).row(SUMMARY, k, found, cause, bound.iloc[k]))
    return flags


def decimals(values: pd.Series, share: float = DECIMALS_SHARE) -> int:
    """Return the fewest decimals (at most six) that suffice for more than this share of a column's values."""
    numbers = values.dropna().to_numpy(dtype=float)
    for places in range(MAX_DECIMALS):
        if not len(numbers) or np.isclose(numbers, numbers.round(places), rtol=1e-12, atol=1e-9).mean() > share:
            return places
    return MAX_DECIMALS


def _rounding(*columns: pd.Series) -> float:
    """Return the largest difference by which rounding can put values of these columns out of order."""
    places = [decimals(column) for column in columns]
    return 1e-6 if len(set(places)) == 1 else 0.5 * 10.0 ** -min(places) + 1e-6


def _out_of_order(table: str, frame: pd.DataFrame, names: pd.Series, low: str, high: str) -> list[Flag]:
    lower, upper = (frame[name].astype("float64") for name in (low, high))
    both = lower.notna() & upper.notna()
    wrong = both & (lower > upper + _rounding(lower, upper))
    n, of = int(wrong.sum()), int(both.sum())
    if not n:
        return []
    flags, column = [], Column(table, frame, names, low, lower)
    cause = f"a value is wrong, or belongs to another row or column: {low} cannot exceed {high}"
    if of >= MIN_ROWS_OF_COLUMN and n >= COLUMN_SHARE * of:
        cause = f"the columns {low} and {high} are exchanged or misnamed"
        ratio = float((lower / upper)[wrong & (upper > 0)].median())
        if abs(np.log(ratio / THOUSAND)) < np.log(2):
            cause = f"factor 1,000: {high} is in seconds, or {low} in microseconds, where it should be in ms"
        found = f"{low} exceeds {high} in {n:,} of {count(of, 'row')}"
        flags.append(column.whole(SUMMARY, found, cause, n, 0))
    for k in np.flatnonzero(wrong):
        found = f"{low} is {number(lower.iloc[k])}, and {high} is {number(upper.iloc[k])}"
        flags.append(column.row(SUMMARY, k, found, cause, upper.iloc[k]))
    return flags


def _spread(frame: pd.DataFrame, names: pd.Series) -> list[Flag]:
    """Flag standard deviations that are impossible with the minimum, mean and maximum."""
    minimum, mean, maximum, sd = (
        frame[f"{name}_rtt_ms"].astype("float64").to_numpy() for name in ("min", "mean", "max", "sd")
    )
    n = frame.n_sent.astype("float64").to_numpy()
    slack = 10.0 ** -min((decimals(frame[f"{name}_rtt_ms"]) for name in ("min", "mean", "max", "sd")), default=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        no_mean = np.isnan(mean)
        ordered = (minimum <= mean + slack) & (mean <= maximum + slack)
        # Without a mean, the variance is largest with half of the values at either end.
        halves = ((maximum - minimum) / 2 + slack) ** 2
        product = (maximum - mean + slack).clip(0) * (mean - minimum + slack).clip(0)
        cut = 2 * np.where(no_mean, maximum, mean) * CUT_MS
        bound = np.sqrt(np.where(no_mean, halves, product) * 2.0 + cut)
        floor = np.where(n > 1, (maximum - minimum - slack).clip(0) / np.sqrt(2 * n) - slack, 0.0)
        high = (sd > bound + slack) & (ordered | no_mean)
        low = (sd < floor) & (maximum >= minimum)
    flags, column = [], Column("pings", frame, names, "sd_rtt_ms", frame.sd_rtt_ms.astype("float64"))
    for wrong, ends, verdict, limit in ((high, bound, IMPOSSIBLE, "at most"), (low, floor, SUSPECT, "at least")):
        for k in np.flatnonzero(wrong):
            values = f"values from {number(minimum[k])} to {number(maximum[k])}"
            found = f"sd_rtt_ms is {number(sd[k])}, but {values} allow {limit} {number(ends[k])}"
            cause = "a wrong value, or a measure of spread other than the standard deviation"
            flags.append(column.row(SUMMARY, k, found, cause, ends[k], verdict))
    return flags
