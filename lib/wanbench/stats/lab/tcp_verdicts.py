"""Verdicts on the models of TCP: window, capacity and loss from throughput, against the values that were set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, isnan, nan

import pandas as pd

from ...checks import check_level
from ...formatting import percent
from ..result import Estimate
from ..tcp.loss import MODELS, RATE_BASED, estimate_loss
from ..tcp.window import advertised_window_bytes
from ..tcp.window_fit import fit_window
from . import link_verdicts
from .verdicts import (
    OUTSIDE,
    UNKNOWN,
    WITHIN,
    Verdicts,
    by_sender,
    groups,
    judged,
    link_of,
    or_unknown,
    row_of,
)

EVERY = "every region"
CLEAR_OF_KNEE = 1.25
"""How much shorter than at the knee an RTT must be for the link alone to limit: near the knee both do."""
ALLOWED_SHARE = 0.05
"""Allowed error of window and capacity: the model leaves out slow start and the queue, some per cent each."""
PAYLOAD_SHARE = 1448 / 1500
"""Payload per byte that the link counts: TCP with timestamps over IPv4."""


def of_run(
    run: Mapping[str, pd.DataFrame],
    pairs: pd.DataFrame,
    *,
    window_bytes: float | None = None,
    level: float = 0.95,
) -> Verdicts:
    """
    What was set on the links of a run against what its throughput and RTTs say of it.

    There are rows for the window and the capacity of `fit_window`, for the rate of each link that limited a pair (more
    than its window did), and for the loss of each link that has one. Where links lose packets, loss is the limit, so
    their pairs say nothing about the first three.

    Parameters
    ----------
    run : mapping of DataFrame
        Tables transfers and links, as `read_run` gives them. Transfers should be of one setting.
    pairs : DataFrame
        Table `pairs` of these transfers. Where its RTTs are without load, the window comes out too small by what the
        transfer's own queue adds to them: 6 % where 80 kB per round trip of 100 ms leave over a link of 10 Mbit/s.
    window_bytes : float, optional
        The window that receivers advertise; without it, `advertised_window_bytes` of the buffer that the transfers
        asked for (iperf3 -w), if that is the same for all.
    """
    transfers, links = run["transfers"], run["links"]
    run_id = str(transfers.run_id.iloc[0]) if transfers.run_id.nunique() == 1 else ""
    lossy = {tuple(pair) for pair in links[links.loss > 0][["from_region", "to_region"]].to_numpy()}
    whole = [not {ends, ends[::-1]} & lossy for ends in zip(pairs.from_region, pairs.to_region, strict=True)]
    parts = _limits(transfers, links, pairs[whole], window_bytes, run_id, level) if any(whole) else []
    if lossy:
        rows = loss(transfers, links, level=level).rows
        kept = [pair in lossy for pair in zip(rows.from_region, rows.to_region, strict=True)]
        parts.append(Verdicts(rows[kept]))
    return Verdicts.join(*parts)


def _limits(transfers, links, pairs, window_bytes, run_id, level) -> list[Verdicts]:
    """Window, capacity and rate, from pairs that no loss limits."""
    fit = fit_window(pairs, level=level)
    asked = transfers.window_bytes.dropna().unique() if "window_bytes" in transfers else []
    if window_bytes is None and len(asked) == 1:
        window_bytes = float(advertised_window_bytes(2 * asked[0]))
    parts = [] if window_bytes is None else [window(fit.window, window_bytes, run_id=run_id)]
    rates = links.rate_bps.dropna().unique()
    limited = fit.pairs[fit.pairs.limit == "capacity"]
    if isfinite(fit.knee_rtt.estimate):
        limited = limited[limited.rtt_ms * CLEAR_OF_KNEE <= fit.knee_rtt.estimate]
    ends = {frozenset(pair) for pair in limited[["region_a", "region_b"]].to_numpy()}
    if len(rates) == 1 and ends:
        parts.append(capacity(fit.capacity, float(rates[0]), run_id=run_id))
    full = [frozenset(pair) in ends for pair in transfers[["from_region", "to_region"]].to_numpy()]
    if len(rates):
        parts.append(link_verdicts.rate(transfers[full], links))
    return parts


def loss(
    transfers: pd.DataFrame, links: pd.DataFrame, *, by: Sequence[str] = ("run_id",), level: float = 0.95
) -> Verdicts:
    """
    The loss estimated from TCP throughput (`estimate_loss`) against the loss set on the sending direction.

    Within the limit if the request lies inside the interval. There is a row per direction and congestion control, also
    where the link has no loss: something else then limits the sender, and the verdict is "unknown".

    Parameters
    ----------
    transfers, links : DataFrame
        Tables of these names. Reverse transfers count for the direction in which the data went, and are unknown: their
        RTT under load is not known.
    by : sequence of str
        Columns of both tables that, with from_region and to_region, say which request a transfer belongs to.
    """
    check_level(level)
    limit, rows = f"request inside the {percent(level)} interval", []
    for key, ends, group in groups("transfers", by_sender(transfers[transfers.protocol == "TCP"]), by):
        request = link_of(links, key, ends)
        for name, part in group.groupby("congestion_control", dropna=False):
            row = row_of(key, ends, "loss-from-throughput", "fraction", level, limit, len(part))
            reason = f"no model for {name}"
            if request is not None and (name in MODELS or name in RATE_BASED):
                row, reason = _loss_row(row, float(request.loss), part, level)
            rows.append(or_unknown(row, request, reason))
    return Verdicts.of(rows)


def _loss_row(row: dict, requested: float, part: pd.DataFrame, level: float) -> tuple[dict, str]:
    usable = part[part.mean_rtt_ms.notna() & part.throughput_bps.notna()]
    if usable.empty:
        return row, "no transfer has a throughput and an RTT under load"
    # `estimate_loss` leaves reverse transfers out; `by_sender` has already turned these round.
    estimate = estimate_loss(usable.assign(direction="forward"), level=level)
    note = "; ".join(
        [estimate.method.rpartition("; ")[2], part.congestion_control.iloc[0], *estimate.warnings]
    )
    row |= judged(requested, estimate.estimate, estimate.low, estimate.high, nan, note)
    row["verdict"] = WITHIN if estimate.low <= requested <= estimate.high else OUTSIDE
    if not requested > 0 or not estimate.low <= estimate.high:
        row |= {"verdict": UNKNOWN, "note": f"loss is not what limits this link; {note}"}
    return row, ""


def window(estimate: Estimate, window_bytes: float, *, run_id: str = "") -> Verdicts:
    """
    The fitted window (`fit_window(...).window`) against the window that receivers advertise: within 5 %.

    Parameters
    ----------
    estimate : Estimate
        In bytes.
    window_bytes : float
        What the sender's kernel reports of the receiver (`ss -ti`: snd_wnd), or `advertised_window_bytes`.
    """
    return _against(estimate, "window", window_bytes, run_id)


def capacity(estimate: Estimate, rate_bps: float, *, run_id: str = "") -> Verdicts:
    """The fitted capacity (`fit_window(...).capacity`), payload, against the rate set on the links: within 5 %."""
    return _against(estimate, "capacity", rate_bps * PAYLOAD_SHARE, run_id)


def _against(estimate: Estimate, name: str, requested: float, run_id: str) -> Verdicts:
    limit = percent(ALLOWED_SHARE)
    row = row_of({"run_id": run_id}, (EVERY, EVERY), name, estimate.unit, estimate.level, limit, estimate.n)
    if not isnan(estimate.estimate):
        row |= judged(
            requested,
            estimate.estimate,
            estimate.low,
            estimate.high,
            ALLOWED_SHARE * requested,
            "; ".join(estimate.warnings),
        )
    return Verdicts.of([or_unknown(row, row, "it is not identified")])
