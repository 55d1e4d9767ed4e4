"""
What was set against what was estimated: the models of TCP on a link whose truth is known.

Rows have the shape of `calibration`, so that they concatenate with those of `link` (whose `rate` compares the link's
rate) and its `summary`, `findings` and `readable` take them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan

import pandas as pd

from ...checks import check_level
from ...formatting import percent
from ..result import Estimate
from ..tcp.loss import MODELS, RATE_BASED, estimate_loss
from ..tcp.window import advertised_window_bytes
from ..tcp.window_fit import fit_window
from . import links as link
from .calibration import OUTSIDE, WITHIN, groups, judged, link_of, or_unknown, row_of, table_of

EVERY = "every region"
CLEAR_OF_KNEE = 1.25
"""How much shorter than at the knee an RTT must be, for the link alone to limit: near it both do."""


def of_run(
    run: Mapping[str, pd.DataFrame],
    pairs: pd.DataFrame,
    *,
    window_bytes: float | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """
    What was set on the links of a run, what its throughput and RTTs say of it, and whether that is within the limit.

    There are rows for the window and the capacity of `fit_window`, for the rate of each link that limited a pair (more
    than its window did), and for the loss of each link that has one. Where links lose packets, loss is what limits, so
    their pairs say nothing of the former three. `calibration.readable` makes a table for a page.

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
    rows = _limits(transfers, links, pairs[whole], window_bytes, run_id, level) if any(whole) else []
    if lossy:
        found = loss(transfers, links, level=level)
        rows.append(found[[pair in lossy for pair in zip(found.from_region, found.to_region, strict=True)]])
    filled = [part for part in rows if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else table_of([])


def _limits(transfers, links, pairs, window_bytes, run_id, level) -> list[pd.DataFrame]:
    """Window, capacity and rate, from pairs that nothing but these limits."""
    fit = fit_window(pairs, level=level)
    asked = transfers.window_bytes.dropna().unique() if "window_bytes" in transfers else []
    if window_bytes is None and len(asked) == 1:
        window_bytes = float(advertised_window_bytes(2 * asked[0]))
    rows = [] if window_bytes is None else [window(fit.window, window_bytes, run_id=run_id)]
    rates = links.rate_bps.dropna().unique()
    limited = fit.pairs[fit.pairs.limit == "capacity"]
    if isfinite(fit.knee_rtt.estimate):
        limited = limited[limited.rtt_ms * CLEAR_OF_KNEE <= fit.knee_rtt.estimate]
    ends = {frozenset(pair) for pair in limited[["region_a", "region_b"]].to_numpy()}
    if len(rates) == 1 and ends:
        rows.append(capacity(fit.capacity, float(rates[0]), run_id=run_id))
    full = [frozenset(pair) in ends for pair in transfers[["from_region", "to_region"]].to_numpy()]
    if len(rates):
        rows.append(link.rate(transfers[full], links))
    return rows


def loss(
    transfers: pd.DataFrame, links: pd.DataFrame, *, by: Sequence[str] = ("run_id",), level: float = 0.95
) -> pd.DataFrame:
    """
    The loss estimated from TCP throughput (`estimate_loss`) against that set on the sending direction.

    Within the limit if the request lies inside the interval. There is a row per direction and congestion control, also
    where the link has no loss: what then limits the sender is something else, and the row says so as "unknown".

    Parameters
    ----------
    transfers, links : DataFrame
        Tables of these names. Reverse transfers count for the direction in which the data went, and are unknown:
        no RTT under load is known of them.
    by : sequence of str
        Columns of both tables that, with from_region and to_region, say which request a transfer belongs to.
    """
    check_level(level)
    known = transfers[(transfers.protocol == "TCP") & transfers.direction.notna()]
    forward = known.direction == "forward"
    known = known.assign(
        from_region=known.from_region.where(forward, known.to_region),
        to_region=known.to_region.where(forward, known.from_region),
    )
    rows = []
    for key, ends, group in groups(known, by):
        request = link_of(links, key, ends, by)
        for name, part in group.groupby("congestion_control", dropna=False):
            row = row_of(
                key,
                ends,
                "loss-from-throughput",
                "fraction",
                level,
                f"request inside the {percent(level)} interval",
                len(part),
            )
            reason = f"no model for {name}"
            if request is not None and (name in MODELS or name in RATE_BASED):
                row, reason = _loss_row(row, float(request.loss), part, level)
            rows.append(or_unknown(row, request, reason))
    return table_of(rows)


def _loss_row(row: dict, requested: float, part: pd.DataFrame, level: float) -> tuple[dict, str]:
    usable = part[part.mean_rtt_ms.notna() & part.throughput_bps.notna()]
    if usable.empty:
        return row, "no transfer has a throughput and an RTT under load"
    found = estimate_loss(usable.assign(direction="forward"), level=level)
    said = "; ".join([found.method.rpartition("; ")[2], part.congestion_control.iloc[0], *found.warnings])
    row |= judged(requested, found.estimate, found.low, found.high, nan, said)
    row["verdict"] = WITHIN if found.low <= requested <= found.high else OUTSIDE
    if not requested > 0 or not found.low <= found.high:
        row |= {"verdict": "unknown", "note": f"loss is not what limits this link; {said}"}
    return row, ""


def window(
    estimate: Estimate, window_bytes: float, *, run_id: str = "", allowed_share: float = 0.05
) -> pd.DataFrame:
    """
    The fitted window (`fit_window(...).window`) against the window that receivers advertise.

    Parameters
    ----------
    estimate : Estimate
        In bytes.
    window_bytes : float
        What the sender's kernel says of the receiver (`ss -ti`: snd_wnd), or `advertised_window_bytes`.
    allowed_share : float
        Within the limit if the estimate is off by no more than this share.
    """
    return _against(estimate, "window", window_bytes, run_id, allowed_share)


def capacity(
    estimate: Estimate,
    rate_bps: float,
    *,
    payload_share: float = 1448 / 1500,
    run_id: str = "",
    allowed_share: float = 0.05,
) -> pd.DataFrame:
    """
    The fitted capacity (`fit_window(...).capacity`) against the rate that was set on the links.

    Parameters
    ----------
    payload_share : float
        Payload per byte that the link counts: 1448 of 1500 for TCP with timestamps over IPv4.
    """
    return _against(estimate, "capacity", rate_bps * payload_share, run_id, allowed_share)


def _against(
    estimate: Estimate, name: str, requested: float, run_id: str, allowed_share: float
) -> pd.DataFrame:
    row = row_of(
        {"run_id": run_id},
        (EVERY, EVERY),
        name,
        estimate.unit,
        estimate.level,
        percent(allowed_share),
        estimate.n,
    )
    if estimate.estimate == estimate.estimate:
        row |= judged(
            requested,
            estimate.estimate,
            estimate.low,
            estimate.high,
            allowed_share * requested,
            "; ".join(estimate.warnings),
        )
    return table_of([or_unknown(row, row, "it is not identified")])
