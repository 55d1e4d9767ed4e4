"""
The shape of a calibration: per link and quantity what was requested, what was delivered, and the verdict.

`verdict` is "within" or "outside" the stated limit, or "unknown" where the data cannot tell; `note` says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan

import pandas as pd

from ...errors import ParameterError
from ...findings import Finding
from ...formatting import count, interval, percent, quantity

COLUMNS = [
    "run_id",
    "from_region",
    "to_region",
    "quantity",
    "unit",
    "requested",
    "delivered",
    "low",
    "high",
    "level",
    "error",
    "allowed",
    "limit",
    "n",
    "verdict",
    "note",
]
WITHIN, OUTSIDE, UNKNOWN = "within", "outside", "unknown"
ENDS = ("from_region", "to_region")
NAMES = {
    "rtt": "round-trip time",
    "jitter": "jitter",
    "mean": "mean round-trip time under jitter",
    "loss": "packet loss",
    "rate": "rate",
    "cut": "time to the last packet after a cut",
    "order": "replies out of order while a delay becomes shorter",
}
METHOD = "requested settings against what was measured, per link; median RTT and rate, exact binomial loss"
ASSUMPTION = "The clock and the tools of the hosts measure better than the limit"


def summary(calibration: pd.DataFrame) -> pd.DataFrame:
    """
    Per quantity: how many links are within, outside and unknown, the limit, and the worst link: that whose error is the
    greatest part of what is allowed for it.
    """
    rows = []
    for name, group in calibration.groupby("quantity", sort=False):
        verdicts = group.verdict.value_counts()
        part = (group.error / group.allowed.where(group.allowed > 0, 1.0)).abs()
        worst = group.loc[part.idxmax()] if part.notna().any() else None
        rows.append(
            {
                "quantity": name,
                "unit": group.unit.iloc[0],
                "n_links": len(group),
                **{f"n_{verdict}": int(verdicts.get(verdict, 0)) for verdict in (WITHIN, OUTSIDE, UNKNOWN)},
                "worst_error": nan if worst is None else float(worst.error),
                "worst_requested": nan if worst is None else float(worst.requested),
                "worst_link": "" if worst is None else f"{worst.from_region} to {worst.to_region}",
                "limit": "; ".join(group.limit.unique()),
                "level": float(group.level.min()),
            }
        )
    columns = ["quantity", "unit", "n_links", "n_within", "n_outside", "n_unknown"]
    worst = ["worst_error", "worst_requested", "worst_link"]
    return pd.DataFrame(rows, columns=[*columns, *worst, "limit", "level"])


def findings(calibration: pd.DataFrame, page: str = "") -> list[Finding]:
    """One finding per quantity, named "calibration-rtt" and so on: how many links are within the limit."""
    return [_finding(row, page) for row in summary(calibration).itertuples(index=False)]


def _finding(row, page: str) -> Finding:
    known = row.n_links - row.n_unknown
    name = NAMES.get(row.quantity, row.quantity)
    sentence = f"{name[0].upper()}{name[1:]}: {row.n_within:,} of {count(known, 'link')} within the limit"
    sentence += f" ({row.limit})"
    if known and row.quantity != "loss" and row.worst_error:
        asked = f" of {quantity(row.worst_requested, row.unit)}" if row.worst_requested else ""
        error = quantity(abs(row.worst_error), row.unit)
        sentence += f"; measured by it, the greatest error is {error}{asked}, {row.worst_link}"
    if row.quantity == "loss" and known:
        sentence += f"; of true links, {percent(1 - row.level)} would be outside by chance"
    if row.n_unknown:
        sentence += f"; {count(row.n_unknown, 'link')} could not be judged"
    return Finding(
        name=f"calibration-{row.quantity}",
        sentence=sentence + ".",
        estimate=row.n_within / known if known else None,
        low=None,
        high=None,
        unit="fraction",
        n=known,
        n_regions=None,
        method=METHOD,
        assumption=ASSUMPTION,
        page=page,
    )


def readable(calibration: pd.DataFrame) -> pd.DataFrame:
    """
    The rows as a reader wants them: numbers with units, the interval in one column.

    Returns
    -------
    DataFrame
        link, requested, delivered, interval, limit, n, verdict, note; all but n are text.
    """
    rows = []
    for row in calibration.itertuples(index=False):
        delivered, ends = interval(row.delivered, row.low, row.high, row.unit)
        rows.append(
            {
                "link": f"{row.from_region} to {row.to_region}",
                "requested": quantity(row.requested, row.unit),
                "delivered": delivered,
                "interval": f"{ends} ({percent(row.level)})" if ends else "none",
                "limit": row.limit,
                "n": row.n,
                "verdict": row.verdict,
                "note": row.note,
            }
        )
    columns = ["link", "requested", "delivered", "interval", "limit", "n", "verdict", "note"]
    return pd.DataFrame(rows, columns=columns)


def groups(frame: pd.DataFrame, by: Sequence[str]) -> Iterable[tuple[dict, tuple[str, str], pd.DataFrame]]:
    missing = [name for name in (*by, *ENDS) if name not in frame.columns]
    if missing:
        raise ParameterError(f"the table lacks {', '.join(missing)}")
    for key, group in frame.groupby([*by, *ENDS], dropna=False, sort=True):
        yield dict(zip(by, key, strict=False)), key[-2:], group


def matching(frame: pd.DataFrame, key: dict) -> pd.DataFrame:
    for name, value in key.items():
        if name not in frame.columns:
            raise ParameterError(f"the table lacks {name}")
        frame = frame[frame[name] == value]
    return frame


def link_of(links: pd.DataFrame, key: dict, ends: tuple[str, str], by: Sequence[str]):
    """The link of one direction, or None; ParameterError if there are two."""
    found = matching(links, {**key, "from_region": ends[0], "to_region": ends[1]})
    if len(found) > 1:
        given = ", ".join(f"{name} {value}" for name, value in key.items())
        raise ParameterError(
            f"{len(found)} links from {ends[0]} to {ends[1]} ({given}); "
            "let `by` name a column that tells them apart"
        )
    return next(found.itertuples(index=False), None)


def both_ways(links, key, ends, by):
    found = [link_of(links, key, each, by) for each in (ends, ends[::-1])]
    return None if None in found else found


def answered(group: pd.DataFrame) -> pd.DataFrame:
    return group[group.rtt_ms.notna() & ~group.duplicate.astype(bool) & ~group.lost.astype(bool)]


def row_of(key: dict, ends, name: str, unit: str, level: float, limit: str, n: int) -> dict:
    start = {**key, "from_region": ends[0], "to_region": ends[1], "quantity": name, "unit": unit}
    rest = dict.fromkeys(("requested", "delivered", "low", "high", "error", "allowed"), nan)
    return {**start, **rest, "level": level, "limit": limit, "n": n, "verdict": UNKNOWN, "note": ""}


def judged(requested, delivered, low, high, allowed, note="") -> dict:
    error = delivered - requested
    return {
        "requested": requested,
        "delivered": delivered,
        "low": low,
        "high": high,
        "error": error,
        "allowed": allowed,
        "verdict": WITHIN if abs(error) <= allowed else OUTSIDE,
        "note": note,
    }


def or_unknown(row: dict, request, reason: str) -> dict:
    if row["verdict"] == UNKNOWN and not row["note"]:
        row["note"] = "the tables do not say what was requested" if request is None else reason
    return row


def table_of(rows: list[dict]) -> pd.DataFrame:
    extra = [name for row in rows[:1] for name in row if name not in COLUMNS]
    return pd.DataFrame(rows, columns=[*COLUMNS, *extra])
