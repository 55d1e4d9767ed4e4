"""Requested against delivered: a verdict per link and quantity, and the functions that make its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan

import pandas as pd

from ...checks import check_columns
from ...errors import ParameterError
from ...findings import Finding
from ...formatting import count, interval, percent, quantity
from ..result import RowsResult

COLUMNS = [
    "run_id", "from_region", "to_region", "quantity", "unit", "requested", "delivered", "low", "high", "level", "error",
    "allowed", "limit", "n", "verdict", "note",
]  # fmt: skip
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


class Verdicts(RowsResult):
    """
    What was requested of links, what was delivered, and whether that is within the stated limit.

    Attributes
    ----------
    rows : DataFrame
        One row per link and quantity: run_id, from_region, to_region, quantity, unit, requested, delivered, low, high,
        level, error (delivered less requested), allowed, limit (in words), n, verdict and note. `verdict` is "within",
        "outside", or "unknown" where the data cannot tell; `note` says why.
    """

    DRAWN_BY = "verdicts_figure.requested_against_delivered"

    @classmethod
    def of(cls, rows: list[dict]) -> Verdicts:
        """Verdicts from rows as `row_of` makes them; further columns stand at the end."""
        extra = [name for row in rows[:1] for name in row if name not in COLUMNS]
        return cls(pd.DataFrame(rows, columns=[*COLUMNS, *extra]))

    @classmethod
    def join(cls, *parts: Verdicts) -> Verdicts:
        """Several verdicts as one."""
        filled = [part.rows for part in parts if len(part.rows)]
        return cls(pd.concat(filled, ignore_index=True)) if filled else cls.of([])

    @property
    def sentence(self) -> str:
        """One sentence per quantity."""
        return " ".join(finding.sentence for finding in self.findings()) or "No link was judged."

    def summary(self) -> pd.DataFrame:
        """
        Per quantity the number of links within, outside and unknown, the limit, and the worst link.

        The worst link is the one whose error is the largest part of the error allowed for it.
        """
        rows = []
        for name, group in self.rows.groupby("quantity", sort=False):
            verdicts = group.verdict.value_counts()
            used = (group.error / group.allowed.where(group.allowed > 0, 1.0)).abs()
            worst = group.loc[used.idxmax()] if used.notna().any() else None
            rows.append(
                {
                    "quantity": name,
                    "unit": group.unit.iloc[0],
                    "n_links": len(group),
                    **{
                        f"n_{verdict}": int(verdicts.get(verdict, 0))
                        for verdict in (WITHIN, OUTSIDE, UNKNOWN)
                    },
                    "worst_error": nan if worst is None else float(worst.error),
                    "worst_requested": nan if worst is None else float(worst.requested),
                    "worst_link": "" if worst is None else f"{worst.from_region} to {worst.to_region}",
                    "limit": "; ".join(group.limit.unique()),
                    "level": float(group.level.min()),
                }
            )
        return pd.DataFrame(rows)

    def findings(self, page: str = "") -> list[Finding]:
        """One finding per quantity, named "calibration-rtt" and so on: how many links are within the limit."""
        return [_finding(row, page) for row in self.summary().itertuples(index=False)]

    def shown(self) -> pd.DataFrame:
        """The rows with units, the interval in one column."""
        rows = []
        for row in self.rows.itertuples(index=False):
            delivered, ends = interval(row.delivered, row.low, row.high, row.unit)
            rows.append(
                {
                    "link": f"{row.from_region} to {row.to_region}",
                    "quantity": row.quantity,
                    "requested": quantity(row.requested, row.unit),
                    "delivered": delivered,
                    "interval": f"{ends} ({percent(row.level)})" if ends else "none",
                    "limit": row.limit,
                    "n": f"{row.n:,}",
                    "verdict": row.verdict,
                    "note": row.note,
                }
            )
        return pd.DataFrame(rows)


def _finding(row, page: str) -> Finding:
    judged = row.n_links - row.n_unknown
    name = NAMES.get(row.quantity, row.quantity)
    sentence = f"{name[0].upper()}{name[1:]}: {row.n_within:,} of {count(judged, 'link')} within the limit"
    sentence += f" ({row.limit})"
    if judged and row.quantity != "loss" and row.worst_error:
        request = f" of {quantity(row.worst_requested, row.unit)}" if row.worst_requested else ""
        error = quantity(abs(row.worst_error), row.unit)
        sentence += f"; relative to the limit, the largest error is {error}{request}, {row.worst_link}"
    if row.quantity == "loss" and judged:
        sentence += f"; {percent(1 - row.level)} of accurate links would be outside by chance"
    if row.n_unknown:
        sentence += f"; {count(row.n_unknown, 'link')} could not be judged"
    return Finding(
        name=f"calibration-{row.quantity}",
        sentence=sentence + ".",
        estimate=row.n_within / judged if judged else None,
        low=None,
        high=None,
        unit="fraction",
        n=judged,
        n_regions=None,
        method=METHOD,
        assumption=ASSUMPTION,
        page=page,
    )


def groups(
    table: str, frame: pd.DataFrame, by: Sequence[str]
) -> Iterable[tuple[dict, tuple[str, str], pd.DataFrame]]:
    """Key, ends and rows of each direction of a link."""
    check_columns(table, frame, [*by, *ENDS])
    for key, group in frame.groupby([*by, *ENDS], dropna=False, sort=True):
        yield dict(zip(by, key, strict=False)), key[-2:], group


def matching(table: str, frame: pd.DataFrame, key: dict) -> pd.DataFrame:
    """The rows that have all values of `key`."""
    check_columns(table, frame, key)
    for name, value in key.items():
        frame = frame[frame[name] == value]
    return frame


def link_of(links: pd.DataFrame, key: dict, ends: tuple[str, str]):
    """The link of one direction, or None; ParameterError if there are two."""
    rows = matching("links", links, key | dict(zip(ENDS, ends, strict=True)))
    if len(rows) > 1:
        given = ", ".join(f"{name} {value}" for name, value in key.items())
        raise ParameterError(
            f"{len(rows)} links from {ends[0]} to {ends[1]} ({given}); "
            "name a column in `by` that distinguishes them"
        )
    return next(rows.itertuples(index=False), None)


def link_both_ways(links: pd.DataFrame, key: dict, ends: tuple[str, str]):
    """The links of both directions, or None if one is missing."""
    pair = [link_of(links, key, way) for way in (ends, ends[::-1])]
    return None if None in pair else pair


def by_sender(transfers: pd.DataFrame) -> pd.DataFrame:
    """Transfers whose direction is known, from_region and to_region as the data went (iperf3 can send in reverse)."""
    rows = transfers[transfers.direction.notna()]
    forward = rows.direction == "forward"
    return rows.assign(
        from_region=rows.from_region.where(forward, rows.to_region),
        to_region=rows.to_region.where(forward, rows.from_region),
    )


def answered(echoes: pd.DataFrame) -> pd.DataFrame:
    """Echoes with a reply, each once."""
    return echoes[echoes.rtt_ms.notna() & ~echoes.duplicate.astype(bool) & ~echoes.lost.astype(bool)]


def row_of(key: dict, ends, name: str, unit: str, level: float, limit: str, n: int) -> dict:
    """A row without a verdict yet."""
    start = {**key, "from_region": ends[0], "to_region": ends[1], "quantity": name, "unit": unit}
    numbers = dict.fromkeys(("requested", "delivered", "low", "high", "error", "allowed"), nan)
    return {**start, **numbers, "level": level, "limit": limit, "n": n, "verdict": UNKNOWN, "note": ""}


def judged(requested, delivered, low, high, allowed, note="") -> dict:
    """The columns of a row that a measurement fills."""
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
    """The row, with the reason if it has no verdict."""
    if row["verdict"] == UNKNOWN and not row["note"]:
        row["note"] = "the tables do not say what was requested" if request is None else reason
    return row
