"""Impossible summaries: percentiles out of order, spreads too large, more echoes lost than sent."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pandas as pd

from ..formatting import count, number
from .observations import row_names
from .rule import IMPOSSIBLE, SUSPECT, Rule

RULE = Rule(
    "summary",
    "minimum <= median, mean, percentiles in order <= maximum; the standard deviation fits them; n lost <= n sent.",
    "sd^2 <= 2 (max - mean)(mean - min) + 2 mean x 1 us, and sd >= (max - min) / sqrt(2 n sent); tolerance: the "
    "rounding of the columns. The factor 2 is n / (n - 1) of two echoes; the last term is by how much ping's "
    "mdev exceeds a standard deviation, because it cuts the mean to whole us",
    "Bhatia & Davis 2000, A better bound on the variance; von Szokefalvi Nagy 1918",
)
ORDER = {
    "pings": (
        ("min_rtt_ms", "median_rtt_ms", "p90_rtt_ms", "p95_rtt_ms", "p99_rtt_ms", "max_rtt_ms"),
        ("min_rtt_ms", "mean_rtt_ms", "max_rtt_ms"),
        ("n_lost", "n_sent"),
    ),
    "transfers": (("min_rtt_ms", "mean_rtt_ms", "max_rtt_ms"), ("lost_packets", "packets")),
    "pairs": (("n_lost", "n_echoes"),),
}
"""By table: columns whose values cannot decrease from left to right."""
COLUMN_SHARE = 0.9
"""From this share of wrong rows on, the columns themselves are wrong."""
MIN_ROWS_OF_COLUMN = 5
"""Fewer rows do not blame a column."""
MAX_DECIMALS = 6
"""Nothing is measured finer than to the nanosecond."""
DECIMALS_SHARE = 1 / 3
"""A part of the values may end in 0, and so have fewer decimals than the column."""
CUT_MS = 0.001
"""ping cuts its mean to whole microseconds before it computes mdev."""
THOUSAND = 1000


def check(tables: Mapping[str, pd.DataFrame]) -> list[dict]:
    """Flags of the rows with an impossible summary, and of columns that look exchanged."""
    flags = []
    for table, orders in ORDER.items():
        if table not in tables or tables[table].empty:
            continue
        frame = tables[table]
        names = row_names(table, frame)
        for low, high in _neighbours(frame, orders):
            flags += _out_of_order(table, frame, names, low, high)
        if table == "pings":
            flags += _spread(frame, names)
    return flags


def _neighbours(frame, orders) -> list[tuple[str, str]]:
    """Pairs of columns: each that has values with the next larger one."""
    neighbours = []
    for order in orders:
        used = [name for name in order if name in frame and frame[name].notna().any()]
        neighbours += pairwise(used)
    return list(dict.fromkeys(neighbours))


def decimals(values: pd.Series, share: float = DECIMALS_SHARE) -> int:
    """The fewest decimal places, at most six, that suffice for more than this share of a column's values."""
    numbers = values.dropna().to_numpy(dtype=float)
    for places in range(MAX_DECIMALS):
        if (
            not len(numbers)
            or np.isclose(numbers, numbers.round(places), rtol=1e-12, atol=1e-9).mean() > share
        ):
            return places
    return MAX_DECIMALS


def _rounding(*columns: pd.Series) -> float:
    """The error by which rounding may put values of these columns out of order."""
    places = [decimals(column) for column in columns]
    return 1e-6 if len(set(places)) == 1 else 0.5 * 10.0 ** -min(places) + 1e-6


def _out_of_order(table, frame, names, low, high) -> list[dict]:
    lower, upper = (frame[name].astype("float64") for name in (low, high))
    both = lower.notna() & upper.notna()
    wrong = both & (lower > upper + _rounding(lower, upper))
    n, of = int(wrong.sum()), int(both.sum())
    if not n:
        return []
    flags = []
    cause = f"a wrong value, or one of another row or column; {low} cannot exceed {high}"
    if of >= MIN_ROWS_OF_COLUMN and n >= COLUMN_SHARE * of:
        cause = f"the columns {low} and {high} are exchanged or misnamed"
        ratio = float((lower / upper)[wrong & (upper > 0)].median())
        if abs(np.log(ratio / THOUSAND)) < np.log(2):
            cause = f"factor 1,000: {high} is in seconds, or {low} in microseconds, where it should be in ms"
        found = f"{low} exceeds {high} in {n:,} of {count(of, 'row')}"
        flags.append(RULE.flag(table, "column", IMPOSSIBLE, found, cause, column_name=low, value=n, bound=0))
    for k in np.flatnonzero(wrong):
        found = f"{low} is {number(lower.iloc[k])}, and {high} is {number(upper.iloc[k])}"
        where = {"column_name": low, "value": lower.iloc[k], "bound": upper.iloc[k]}
        flags.append(RULE.flag_row(table, frame, names, k, IMPOSSIBLE, found, cause, **where))
    return flags


def _spread(frame, names) -> list[dict]:
    """Flags of standard deviations that the minimum, mean and maximum rule out."""
    minimum, mean, maximum, sd = (
        frame[f"{name}_rtt_ms"].astype("float64").to_numpy() for name in ("min", "mean", "max", "sd")
    )
    n = frame.n_sent.astype("float64").to_numpy()
    slack = 10.0 ** -min(
        (decimals(frame[f"{name}_rtt_ms"]) for name in ("min", "mean", "max", "sd")), default=0
    )
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
    flags = []
    for wrong, ends, verdict, limit in (
        (high, bound, IMPOSSIBLE, "at most"),
        (low, floor, SUSPECT, "at least"),
    ):
        for k in np.flatnonzero(wrong):
            found = (
                f"sd_rtt_ms is {number(sd[k])} where values from {number(minimum[k])} to {number(maximum[k])} allow "
                f"{limit} {number(ends[k])}"
            )
            cause = "a wrong value, or a spread of another kind than a standard deviation"
            where = {"column_name": "sd_rtt_ms", "value": sd[k], "bound": ends[k]}
            flags.append(RULE.flag_row("pings", frame, names, k, verdict, found, cause, **where))
    return flags
