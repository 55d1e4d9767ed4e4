"""Compare the window, capacity and loss that TCP throughput implies with the settings of transfers and links."""

from collections.abc import Mapping
from math import isfinite, isnan

import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import percent
from wanbench.methods.lab import link_verdicts
from wanbench.methods.lab.verdicts import UNKNOWN, Verdicts, by_sender, groups, judged, link_of, or_unknown, row_of
from wanbench.methods.result import LEVEL, Estimate, Fields
from wanbench.methods.tcp.models import advertised_window_bytes
from wanbench.methods.tcp.window_fit import fit_window

from .loss import MODELS, RATE_BASED, estimate_loss

EVERY = "every region"
# Factor by which an RTT must be below the knee for the link alone to limit: near the knee the window limits as well
CLEAR_OF_KNEE = 1.25
# Allowed error of window and capacity: the model lacks slow start and the queue, some per cent each
ALLOWED_SHARE = 0.05
# Payload share of the bytes that a link counts, by IP version: TCP with timestamps
PAYLOAD_SHARE = {4: 1448 / 1500, 6: 1428 / 1500}


def of_run(run: Mapping[str, pd.DataFrame], pairs: pd.DataFrame) -> Verdicts:
    """
    Compare the settings of a run's links with the values that its throughput and RTTs imply.

    The rows are: the window fitted by `fit_window` (if all transfers requested the same buffer with iperf3 -w), the
    fitted capacity (if all links have the same rate), the rate of each link that limited a pair, and the loss of each
    lossy link. Pairs on lossy links are used only for the loss. `rtt_ms` of `pairs` should be measured under load:
    without load the window comes out too small, for example by 6 % if a sender puts 80 kB per round trip of 100 ms on
    a link of 10 Mbit/s.

    Raises MissingDataError: table `links` is empty, as the hosts of the run have no emulated links.
    """
    transfers, links = run["transfers"], run["links"]
    if links.empty:
        message = "the hosts of this run have no emulated links, so there are no settings to compare with."
        raise MissingDataError(message)
    run_id = str(transfers.run_id.iloc[0]) if transfers.run_id.nunique() == 1 else ""
    lossy = {tuple(pair) for pair in links[links.loss > 0][["from_region", "to_region"]].to_numpy()}
    whole = [not {ends, ends[::-1]} & lossy for ends in zip(pairs.from_region, pairs.to_region, strict=True)]
    parts = _limits(transfers, links, pairs[whole], run_id) if any(whole) else []
    if lossy:
        ends = transfers[["from_region", "to_region"]].itertuples(index=False, name=None)
        own = [bool({pair, pair[::-1]} & lossy) for pair in ends]
        rows = loss(transfers[own] if any(own) else transfers, links).rows
        kept = [pair in lossy for pair in zip(rows.from_region, rows.to_region, strict=True)]
        parts.append(Verdicts(rows[kept]))
    return Verdicts.join(*parts)


def _limits(transfers: pd.DataFrame, links: pd.DataFrame, pairs: pd.DataFrame, run_id: str) -> list[Verdicts]:
    """Return the verdicts on window, capacity and rate, from pairs on links without loss."""
    fit = fit_window(pairs)
    asked = transfers.window_bytes.dropna().unique() if "window_bytes" in transfers else []
    parts = []
    if len(asked) == 1:
        # Linux doubles the buffer that it is asked for.
        parts.append(window(fit.window, float(advertised_window_bytes(2 * asked[0])), run_id=run_id))
    rates = links.rate_bps.dropna().unique()
    limited = fit.pairs[fit.pairs.limit == "capacity"]
    if isfinite(fit.knee_rtt.estimate):
        limited = limited[limited.rtt_ms * CLEAR_OF_KNEE <= fit.knee_rtt.estimate]
    ends = {frozenset(pair) for pair in limited[["region_a", "region_b"]].to_numpy()}
    if len(rates) == 1 and ends:
        by = 6 if "ip_version" in transfers and (transfers.ip_version == 6).any() else 4
        parts.append(capacity(fit.capacity, float(rates[0]), run_id=run_id, ip_version=by))
    full = [frozenset(pair) in ends for pair in transfers[["from_region", "to_region"]].to_numpy()]
    if len(rates):
        parts.append(link_verdicts.rate(transfers[full], links))
    return parts


def loss(transfers: pd.DataFrame, links: pd.DataFrame) -> Verdicts:
    """
    Compare the loss estimated from TCP throughput (`estimate_loss`) with the loss set on the sending direction.

    There is one row per direction and congestion control. The verdict is "within" if the interval contains the loss
    that was set, and "unknown" for a link without loss, because something else limits the sender there.
    """
    limit, rows = f"requested loss inside the {percent(LEVEL)} interval", []
    for key, group in groups("transfers", by_sender(transfers[transfers.protocol == "TCP"])):
        request = link_of(links, key)
        for name, part in group.groupby("congestion_control", dropna=False):
            row = row_of(key, "loss-from-throughput", "fraction", LEVEL, limit, len(part))
            reason = f"no model for {name}"
            if request is not None and (name in MODELS or name in RATE_BASED):
                row, reason = _loss_row(row, float(request.loss), part)
            rows.append(or_unknown(row, request, reason))
    return Verdicts.of(rows)


def _loss_row(row: Fields, requested: float, part: pd.DataFrame) -> tuple[Fields, str]:
    usable = part[part.mean_rtt_ms.notna() & part.throughput_bps.notna()]
    if usable.empty:
        return row, "no transfer has a throughput and an RTT under load"
    # `estimate_loss` leaves reverse transfers out; `by_sender` has already turned these round.
    estimate = estimate_loss(usable.assign(direction="forward"))
    note = "; ".join([estimate.method.rpartition("; ")[2], part.congestion_control.iloc[0], *estimate.warnings])
    row |= judged(requested, estimate.estimate, estimate.low, estimate.high, note=note)
    if not requested > 0 or not estimate.low <= estimate.high:
        row |= {"verdict": UNKNOWN, "note": f"something other than loss limits this link; {note}"}
    return row, ""


def window(estimate: Estimate, window_bytes: float, *, run_id: str = "") -> Verdicts:
    """
    Compare a fitted window with the receive window that the receiver advertised, allowing a difference of 5 %.

    estimate: `fit_window(...).window`, in bytes.
    window_bytes: The advertised window, as the sender's kernel reports it (snd_wnd of `ss -ti`) or as
        `advertised_window_bytes` computes it.
    """
    return _against(estimate, "window", window_bytes, run_id)


def capacity(estimate: Estimate, rate_bps: float, *, run_id: str = "", ip_version: int = 4) -> Verdicts:
    """
    Compare a fitted capacity with the payload rate of links of `rate_bps`, allowing a difference of 5 %.

    estimate: `fit_window(...).capacity`, in bit/s.
    """
    return _against(estimate, "capacity", rate_bps * PAYLOAD_SHARE[ip_version], run_id)


def _against(estimate: Estimate, name: str, requested: float, run_id: str) -> Verdicts:
    key = (run_id, EVERY, EVERY)
    row = row_of(key, name, estimate.unit, estimate.level, percent(ALLOWED_SHARE), estimate.n)
    if not isnan(estimate.estimate):
        allowed, note = ALLOWED_SHARE * requested, "; ".join(estimate.warnings)
        row |= judged(requested, estimate.estimate, estimate.low, estimate.high, allowed, note)
    return Verdicts.of([or_unknown(row, row, "it is not identified")])
