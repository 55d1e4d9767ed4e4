"""Summaries that no set of numbers has: percentiles out of order, spreads too great, more lost than sent."""

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
    "least <= median, mean, percentiles in order <= greatest; the standard deviation fits them; n lost <= n sent.",
    "sd^2 <= 2 (max - mean)(mean - min) + 2 mean x 1 us, and sd >= (max - min) / sqrt(2 n sent); tolerance: the "
    "rounding of the columns. The factor 2 is n / (n - 1) of two echoes; the last term is what ping's mdev exceeds a "
    "spread by, for it cuts the mean to whole us",
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
WHOLE_COLUMN, FEWEST_FOR_COLUMN = 0.9, 5
MOST_DECIMALS, A_THIRD = 6, 1 / 3
CUT_MS, THOUSAND = 0.001, 1000


def check(tables: Mapping[str, pd.DataFrame]) -> list[dict]:
    """Flags of the rows whose summary is none, and of columns that look exchanged."""
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
    """Each column with the next greater one that has values."""
    found = []
    for order in orders:
        used = [name for name in order if name in frame and frame[name].notna().any()]
        found += pairwise(used)
    return list(dict.fromkeys(found))


def decimals(values: pd.Series, share: float = A_THIRD) -> int:
    """How many decimal places more than this share of a column's values can do with, at most six."""
    known = values.dropna().to_numpy(dtype=float)
    for places in range(MOST_DECIMALS):
        if not len(known) or np.isclose(known, known.round(places), rtol=1e-12, atol=1e-9).mean() > share:
            return places
    return MOST_DECIMALS


def _rounding(*columns: pd.Series) -> float:
    """By how much rounding may have put values of these columns out of order."""
    places = [decimals(column) for column in columns]
    return 1e-6 if len(set(places)) == 1 else 0.5 * 10.0 ** -min(places) + 1e-6


def _out_of_order(table, frame, names, low, high) -> list[dict]:
    least, most = (frame[name].astype("float64") for name in (low, high))
    both = least.notna() & most.notna()
    wrong = both & (least > most + _rounding(least, most))
    n, of = int(wrong.sum()), int(both.sum())
    if not n:
        return []
    flags = []
    cause = f"a wrong value, or one of another row or column; {low} cannot exceed {high}"
    if of >= FEWEST_FOR_COLUMN and n >= WHOLE_COLUMN * of:
        cause = f"the columns {low} and {high} are exchanged or misnamed"
        ratio = float((least / most)[wrong & (most > 0)].median())
        if abs(np.log(ratio / THOUSAND)) < np.log(2):
            cause = f"factor 1,000: {high} is in seconds, or {low} in microseconds, where it should be in ms"
        found = f"{low} exceeds {high} in {n:,} of {count(of, 'row')}"
        flags.append(RULE.flag(table, "column", IMPOSSIBLE, found, cause, column_name=low, value=n, bound=0))
    for k in np.flatnonzero(wrong):
        values = least.iloc[k], most.iloc[k]
        found = f"{low} is {number(values[0])}, and {high} is {number(values[1])}"
        flags.append(_row(table, frame, names, k, IMPOSSIBLE, found, cause, low, *values))
    return flags


def _row(table, frame, names, k, verdict, found, cause, column, value, bound) -> dict:
    return RULE.flag(
        table,
        "row",
        verdict,
        found,
        cause,
        row=names.iloc[k],
        from_region=frame.from_region.iloc[k],
        to_region=frame.to_region.iloc[k],
        column_name=column,
        value=value,
        bound=bound,
    )


def _spread(frame, names) -> list[dict]:
    """Standard deviations that the least, the mean and the greatest value rule out."""
    least, mean, most, sd = (
        frame[f"{name}_rtt_ms"].astype("float64").to_numpy() for name in ("min", "mean", "max", "sd")
    )
    n = frame.n_sent.astype("float64").to_numpy()
    slack = 10.0 ** -min(
        (decimals(frame[f"{name}_rtt_ms"]) for name in ("min", "mean", "max", "sd")), default=0
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        ordered = (least <= mean + slack) & (mean <= most + slack)
        small_sample = 2.0
        whole = np.where(np.isnan(mean), ((most - least) / 2 + slack) ** 2, 0.0)
        product = (most - mean + slack).clip(0) * (mean - least + slack).clip(0)
        cut = 2 * np.where(np.isnan(mean), most, mean) * CUT_MS
        bound = np.sqrt(np.where(np.isnan(mean), whole, product) * small_sample + cut)
        floor = np.where(n > 1, (most - least - slack).clip(0) / np.sqrt(2 * n) - slack, 0.0)
        high = (sd > bound + slack) & (ordered | np.isnan(mean))
        low = (sd < floor) & (most >= least)
    flags = []
    for wrong, ends, verdict, word in (
        (high, bound, IMPOSSIBLE, "at most"),
        (low, floor, SUSPECT, "at least"),
    ):
        for k in np.flatnonzero(wrong):
            found = (
                f"sd_rtt_ms is {number(sd[k])} where values from {number(least[k])} to {number(most[k])} allow "
                f"{word} {number(ends[k])}"
            )
            cause = "a wrong value, or a spread of another kind than a standard deviation"
            flags.append(_row("pings", frame, names, k, verdict, found, cause, "sd_rtt_ms", sd[k], ends[k]))
    return flags
