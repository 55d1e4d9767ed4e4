"""Collect verdicts on links: whether each link delivered what was requested, per quantity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan, nan
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_columns
from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import primitives, theme
from wanbench.findings import Finding
from wanbench.formatting import count, interval, percent, quantity
from wanbench.methods.result import Fields, RowsResult

COLUMNS = [
    "run_id", "from_region", "to_region", "quantity", "unit", "requested", "delivered", "low", "high", "level", "error",
    "allowed", "limit", "n", "verdict", "note",
]  # fmt: skip
WITHIN, OUTSIDE, UNKNOWN = "within", "outside", "unknown"
LINK_KEY = ["run_id", "from_region", "to_region"]
NAMES = {
    "rtt": "round-trip time",
    "jitter": "jitter",
    "mean": "mean round-trip time under jitter",
    "loss": "packet loss",
    "rate": "rate",
    "cut": "time to the last packet after a cut",
    "window": "TCP window of the run",
    "capacity": "TCP capacity of the run",
    "loss-from-throughput": "packet loss estimated from throughput",
    "burst": "packets lost in a row",
    "wait": "wait in a queue with CoDel",
    "drop-law": "drops by CoDel",
    "ecn": "segments lost on links that mark packets",
    "delay": "one-way delay of a link that changes",
    "mtu": "largest packet",
    "black-hole": "answers to oversized packets on links that must not answer",
    "order": "replies out of order while a delay becomes shorter",
}
OF_A_RUN = ("window", "capacity")  # Quantities with one number for all links of a run
METHOD = "requested settings against what was measured, per link"
ASSUMPTION = "The hosts' clocks and tools are more accurate than the limit"
TINY = 1e-12  # Where no error is allowed, any error is far outside.
LISTED = 5  # Quantities that the answer names: a longer list would not be read.
MOST_DRAWN = 1.5  # The figure draws errors that exceed their limit by more than half here.
LABEL_CHARACTERS, ROW_PX = 48, 40  # A label that takes a third of the figure, and the height of two lines.
MARKS = {WITHIN: (theme.WITHIN, "circle"), OUTSIDE: (theme.OUTSIDE, "x"), UNKNOWN: (theme.UNKNOWN, "circle-open")}


class Verdicts(RowsResult):
    """
    Requested and delivered values of links, and verdicts: whether the values agree within a limit.

    rows: One row per link and quantity: run_id, from_region, to_region, quantity, unit, requested, delivered, low,
        high, level, error (delivered less requested), allowed (the largest allowed error), limit (as text), n, verdict
        ("within", "outside", or "unknown" if the data do not suffice), note.
    """

    @classmethod
    def of(cls, rows: Sequence[Fields]) -> Verdicts:
        """Make verdicts from rows made with `row_of`."""
        return cls(pd.DataFrame(rows, columns=COLUMNS))

    @classmethod
    def join(cls, *parts: Verdicts) -> Verdicts:
        """Combine several sets of verdicts."""
        filled = [part.rows for part in parts if len(part.rows)]
        return cls(pd.concat(filled, ignore_index=True)) if filled else cls.of([])

    @property
    def headline(self) -> str:
        n, within = len(self.rows), int((self.rows.verdict == WITHIN).sum())
        return f"{within} of {count(n, 'check')} of the lab's links are within their limits."

    @property
    def sentence(self) -> str:
        sentences, rest = [one.sentence for one in self.findings()], self.summary()[LISTED:]
        if len(rest):
            n = rest.n_links.sum() - rest.n_unknown.sum()
            within = f"{rest.n_within.sum():,} are within their limits"
            others = f"Of {count(int(n), 'check')} of the other {len(rest)} quantities, {within}."
            sentences = [*sentences[:LISTED], others]
        return "\n".join(sentences) or "No link was judged."

    def summary(self) -> pd.DataFrame:
        """
        Return a row per quantity, the worst first: the number of links within, outside and unknown, the limit, and the
        worst link.

        Quantities are sorted by their share of links outside and, for equal shares, by the largest error relative to
        the allowed error. The link with this error is the worst.
        """
        rows = []
        for measured, group in self.rows.groupby("quantity", sort=False):
            verdicts = group.verdict.value_counts()
            used = used_limits(group).abs()
            row = {"quantity": measured, "unit": group.unit.iloc[0], "n_links": len(group)}
            row |= {f"n_{name}": int(verdicts.get(name, 0)) for name in (WITHIN, OUTSIDE, UNKNOWN)}
            row |= {"worst_error": nan, "worst_requested": nan, "worst_link": ""}
            if used.notna().any():
                worst = group.loc[used.idxmax()]
                row |= {"worst_error": float(worst.error), "worst_requested": float(worst.requested)}
                row["worst_link"] = f"{worst.from_region} to {worst.to_region}"
            row |= {"limit": "; ".join(group.limit.unique()), "level": float(group.level.min())}
            rows.append((-row["n_outside"] / len(group), -np.nan_to_num(used.max()), row))
        return pd.DataFrame([row for *_, row in sorted(rows, key=lambda one: one[:2])])

    def findings(self, page: str = "") -> list[Finding]:
        """Return a finding per quantity, with a name such as "calibration-rtt": how many links are within the limit."""
        return [_finding(row, page) for row in self.summary().itertuples(index=False)]

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for row in self.rows.itertuples(index=False):
            delivered, ends = interval(row.delivered, row.low, row.high, row.unit)
            cells = {"link": f"{row.from_region} to {row.to_region}", "quantity": row.quantity}
            cells |= {"requested": quantity(row.requested, row.unit), "delivered": delivered}
            cells |= {"interval": f"{ends} ({percent(row.level)})" if ends else "none", "limit": row.limit}
            rows.append(cells | {"n": f"{row.n:,}", "verdict": row.verdict, "note": row.note})
        return pd.DataFrame(rows)

    def figure(self) -> go.Figure:
        """Draw the error of each link, as a share of what is allowed, in a row per quantity with the worst on top."""
        summed = self.summary()
        if summed.empty:
            raise ParameterError("there are no verdicts to draw")
        names = [f"{NAMES.get(row.quantity, row.quantity)} ({row.limit})" for row in summed.itertuples()]
        labels = [
            "<br>".join(map(theme.plain, wrap(name.replace(" %", "\u00a0%"), LABEL_CHARACTERS))) for name in names
        ]
        rows = self.rows.assign(used=used_limits(self.rows).clip(-MOST_DRAWN, MOST_DRAWN)).dropna(subset="used")
        places = dict(zip(summed.quantity, range(len(summed)), strict=True))
        y = rows.quantity.map(places) + rows.groupby("quantity").cumcount() % 5 * 0.12 - 0.24
        figure = go.Figure()
        primitives.band(figure, [-1, 1], [-0.5, -0.5], [len(summed) - 0.5, len(summed) - 0.5])
        for verdict, (colour, symbol) in MARKS.items():
            part = rows[rows.verdict == verdict]
            texts = [
                f"{theme.plain(row.from_region)} to {theme.plain(row.to_region)}<br>requested "
                f"{quantity(row.requested, row.unit)}, delivered {quantity(row.delivered, row.unit)}"
                for row in part.itertuples()
            ]
            marker = {"color": colour, "symbol": symbol, "size": 7}
            about = {"name": verdict, "text": texts, "hovertemplate": "%{text}<extra></extra>"}
            if texts:
                figure.add_scatter(x=part.used, y=y[part.index], mode="markers", marker=marker, **about)
        primitives.label_rows(figure, labels)
        figure.update_xaxes(
            title="error, as a share of the largest allowed", range=[-1.1 * MOST_DRAWN, 1.1 * MOST_DRAWN]
        )
        figure.update_layout(legend=theme.LEGEND_ON_TOP, height=160 + ROW_PX * len(summed))
        good, judged = int((self.rows.verdict == WITHIN).sum()), int((self.rows.verdict != UNKNOWN).sum())
        counts = "; ".join(
            f"{row.quantity} {row.n_within:,} of {row.n_links - row.n_unknown:,}" for row in summed.itertuples()
        )
        return theme.finish(
            figure,
            name="requested-against-delivered",
            title=f"{good:,} of {count(judged, 'check')} of links {'is' if good == 1 else 'are'} within the limit",
            subtitle="One point per link: delivered minus requested value, divided by the limit in brackets. Shaded: "
            f"within. Errors beyond {MOST_DRAWN:g} are drawn there. If the limit is an interval, it ends at 1.",
            alt=f"Errors of emulated links against what was requested, by quantity. Links within the limit: {counts}.",
            caption=f"What links delivered, minus what was requested. Links within the limit: {counts}.",
            table=self.rows,
        )


def used_limits(rows: pd.DataFrame) -> pd.Series:
    """
    Return, for each row of verdicts, the error as a share of the limit, with the error's sign.

    The limit is the column `allowed`. Where that is empty, the requested value must lie in the interval, and the limit
    is the distance from the delivered value to the end of the interval on the requested value's side.
    """
    to_end = (rows.high - rows.delivered).where(rows.error < 0, rows.delivered - rows.low)
    return rows.error / rows.allowed.fillna(to_end).clip(lower=TINY)


def _finding(row: Any, page: str) -> Finding:
    judged = row.n_links - row.n_unknown
    name = NAMES.get(row.quantity) or row.quantity
    are = "is" if judged == 1 else "are"
    sentence = f"{name[0].upper()}{name[1:]}: {row.n_within:,} of {count(judged, 'link')} {are} within the limit"
    if whole_run := row.quantity in OF_A_RUN:
        state = "unknown" if not judged else "within the limit" if row.n_within == judged else "outside the limit"
        sentence = f"{name[0].upper()}{name[1:]}: {state}"
    sentence += f" ({row.limit})"
    if judged and whole_run:
        error, request = quantity(abs(row.worst_error), row.unit), quantity(row.worst_requested, row.unit)
        sentence += f". It is {error} off the expected {request}"
    elif judged and row.quantity != "loss" and row.worst_error:
        request = f" (requested: {quantity(row.worst_requested, row.unit)})" if row.worst_requested else ""
        error = quantity(abs(row.worst_error), row.unit)
        sentence += f". The largest error, relative to the limit, is {error}{request}, from {row.worst_link}"
    if row.quantity == "loss" and judged:
        sentence += f". {percent(1 - row.level)} of accurate links would be outside by chance"
    if row.n_unknown and not whole_run:
        sentence += f". {count(row.n_unknown, 'link')} could not be judged"
    share, texts = row.n_within / judged if judged else None, (METHOD, ASSUMPTION)
    name = f"calibration-{row.quantity}"
    return Finding(name, f"{sentence}.", share, None, None, "fraction", judged, None, *texts, page=page)


def groups(table: str, frame: pd.DataFrame) -> Iterable[tuple[tuple[str, str, str], pd.DataFrame]]:
    """Group a table by `LINK_KEY`: the rows of each run and direction of a link."""
    return check_columns(table, frame, LINK_KEY).groupby(LINK_KEY, dropna=False, sort=True)


def matching(frame: pd.DataFrame, key: tuple[str, str, str]) -> pd.DataFrame:
    """Return the rows of one run and direction of a link; `key` is (run_id, from_region, to_region)."""
    return frame[(frame[LINK_KEY] == list(key)).all(axis=1)]


def link_of(links: pd.DataFrame, key: tuple[str, str, str]) -> Any:
    """Return the row of the link with this (run_id, from_region, to_region), or None; ParameterError for several."""
    rows = matching(check_columns("links", links, LINK_KEY), key)
    if len(rows) > 1:
        run_id, start, end = key
        raise ParameterError(f"{len(rows)} links from {start} to {end} in run {run_id}; allowed: one.")
    return next(rows.itertuples(index=False), None)


def link_both_ways(links: pd.DataFrame, key: tuple[str, str, str]) -> Any:
    """Return the link (run_id, from_region, to_region) and the opposite link, or None if one of them is missing."""
    run_id, start, end = key
    pair = [link_of(links, way) for way in (key, (run_id, end, start))]
    return None if None in pair else pair


def by_sender(transfers: pd.DataFrame) -> pd.DataFrame:
    """Return transfers of known direction, with from_region the sender of the data (iperf3 can send in reverse)."""
    rows = transfers[transfers.direction.notna()]
    forward = rows.direction == "forward"
    return rows.assign(
        from_region=rows.from_region.where(forward, rows.to_region),
        to_region=rows.to_region.where(forward, rows.from_region),
    )


def require_order(echoes: pd.DataFrame, what: str) -> None:
    """
    Raise MissingDataError if the echoes were thinned to counts, and so have no order; `what` names the result that
    needs it.
    """
    thinned = echoes.run_id[echoes.sequence.isna()]
    if len(thinned):
        raise MissingDataError(f"{what} needs the order of echoes, but run {thinned.iloc[0]} was thinned to counts.")


def answered(echoes: pd.DataFrame) -> pd.DataFrame:
    """Return the echoes with a reply, without duplicate replies."""
    return echoes[echoes.rtt_ms.notna() & ~echoes.duplicate.astype(bool) & ~echoes.lost.astype(bool)]


def row_of(key: tuple[str, str, str], name: str, unit: str, level: float, limit: str, n: int) -> Fields:
    """Return a row of `Verdicts.rows` with verdict "unknown", all measured numbers NaN, and run and ends from `key`."""
    start = dict(zip(LINK_KEY, key, strict=True)) | {"quantity": name, "unit": unit}
    numbers = dict.fromkeys(("requested", "delivered", "low", "high", "error", "allowed"), nan)
    return {**start, **numbers, "level": level, "limit": limit, "n": n, "verdict": UNKNOWN, "note": ""}


def judged(requested: float, delivered: float, low: float, high: float, allowed: float = nan, note: str = "") -> Fields:
    """
    Return the columns of a row that depend on the measurement: all numbers, the verdict and the note.

    allowed: The largest allowed error; NaN means that `requested` must lie between `low` and `high` instead.
    """
    error = delivered - requested
    within = low <= requested <= high if isnan(allowed) else abs(error) <= allowed
    verdict = WITHIN if within else OUTSIDE
    numbers = {"requested": requested, "delivered": delivered, "low": low, "high": high}
    return {**numbers, "error": error, "allowed": allowed, "verdict": verdict, "note": note}


def or_unknown(row: Fields, request: object, reason: str) -> Fields:
    """Return the row; if its verdict is "unknown", add the note `reason` or, without a request, that it is missing."""
    if row["verdict"] == UNKNOWN and not row["note"]:
        row["note"] = "the tables do not say what was requested" if request is None else reason
    return row
