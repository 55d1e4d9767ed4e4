"""Judge bursts of loss, queues with CoDel, schedules and the MTU of links, from numbered packets and echoes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, percent, quantity
from wanbench.methods.distance.inflation import order_interval
from wanbench.methods.lab.link_verdicts import LEVEL, RATE_SHARE, RTT_MS, RTT_SHARE, effective_n, wire_bps
from wanbench.methods.lab.verdicts import OUTSIDE, Verdicts, groups, judged, link_of, matching, row_of
from wanbench.methods.result import RowsResult, exact_binomial
from wanbench.methods.tails.quantile_intervals import ranks

# After a change, packets sent before it are still under way or wait: the longest delay of the page's schedule.
SETTLING_S = 0.15
EDGE_S = (
    0.01  # The time at which a schedule began is known from a request to the relay and its answer, which takes less.
)
# RFC 8289 lets at most its target of 5 ms wait permanently; a greedy flow adds its own oscillation.
MOST_WAIT_MS = 15.0
CODEL_INTERVAL_MS = 100.0  # of a link that states none, as RFC 8289 recommends
LAW_SHARE = 0.05  # Time between the last packet that CoDel passes and a drop, and rounding at the ends, add up to less.
FULL_PACKET_BITS = 12_000
IN_INTERVAL = f"requested value inside the {percent(LEVEL)} interval"


def loss_bursts(probes: pd.DataFrame, links: pd.DataFrame) -> Verdicts:
    """
    Judge the share of lost packets, and the mean number of packets lost in a row, in one direction of each link.

    In the emulated model, a packet that follows a lost one is lost with the same probability, whatever came before. So
    the share s of lost packets that another lost packet follows has an exact binomial interval, and the mean burst is
    1 / (1 - s). The interval of the share of lost packets is binomial, too; as losses are dependent, n packets count as
    n (1 - c) / (1 + c), where c is the lag-1 autocorrelation of the model.
    """
    rows = []
    for key, group in groups("probes", probes):
        link, lost = link_of(links, key), group.sort_values("sequence").lost.to_numpy(dtype=bool)
        ends = 1 - link.loss if pd.isna(link.mean_loss_burst) else 1 / link.mean_loss_burst
        kept = 1 - ends - ends * link.loss / (1 - link.loss)
        share = (1 - kept) / (1 + kept)
        low, high = exact_binomial(round(lost.sum() * share), round(len(lost) * share), LEVEL)
        note = f"{lost.sum():,} of {len(lost):,} packets"
        row = row_of(key, "loss", "fraction", LEVEL, IN_INTERVAL, len(lost))
        rows.append(row | judged(link.loss, lost.mean(), low, high, note=note))
        followed = lost[1:][lost[:-1]]
        row = row_of(key, "burst", "packets", LEVEL, IN_INTERVAL, len(followed))
        if len(followed) and not followed.all():
            low, high = (1 / (1 - end) for end in exact_binomial(int(followed.sum()), len(followed), LEVEL))
            row |= judged(1 / ends, 1 / (1 - followed.mean()), low, high)
        rows.append(row)
    return Verdicts.of(rows)


def waits(probes: pd.DataFrame, transfers: pd.DataFrame, links: pd.DataFrame, *, skip_s: float) -> Verdicts:
    """
    Judge whether 95 % of packets wait at most 15 ms in a queue with CoDel, in the steady state of TCP.

    The steady state begins `skip_s` after the first packet. The wait is the one-way delay minus the requested delay of
    the link. The interval of its 95 % quantile is from order statistics, with the effective number of values. The note
    states the share of the rate that TCP uses, and the median wait while the queue is not empty, which is when the wait
    is longer than one full packet takes to send.
    """
    rows, q = [], 0.95
    for key, group in groups("probes", probes):
        link, group = link_of(links, key), group[~group.lost].sort_values("sequence")
        values = group.delay_ms[group.sent_at_s > group.sent_at_s.min() + skip_s].to_numpy(float) - link.delay_ms
        row = row_of(key, "wait", "ms", LEVEL, f"at most {MOST_WAIT_MS:g} ms", len(values))
        if len(values) > 1:
            below, above = ranks(len(values), q, LEVEL, effective_n(values, of="mean"))
            ordered = np.sort(values)
            low, high = ordered[below - 1] if below else 0.0, ordered[above - 1] if above else np.inf
            waiting = pd.Series(values[values > FULL_PACKET_BITS / link.rate_bps * 1000])
            middles = [quantity(value, "ms") for value in (np.median(values), values.mean(), waiting.median())]
            used = sum(map(wire_bps, matching(transfers, key).itertuples())) / link.rate_bps
            busy, used = (percent(round(share, 2)) for share in (len(waiting) / len(values), used))
            note = f"median {middles[0]}, mean {middles[1]}; packets wait in {busy} of the time, then with a median of "
            note += f"{middles[2]}; TCP uses {used} of the rate"
            target = float(link.codel_target_ms)
            row |= judged(target, float(np.quantile(values, q)), low, high, MOST_WAIT_MS - target, note)
        rows.append(row)
    return Verdicts.of(rows)


def drop_law(probes: pd.DataFrame, links: pd.DataFrame) -> Verdicts:
    """
    Judge how many packets CoDel drops if packets arrive faster than the link can pass them and the sender does not slow
    down.

    Drops are counted from the first one until the last packet is sent. By RFC 8289 (section 5.3) the time from drop n
    to drop n + 1 is interval / sqrt(n), so about (t / (2 interval))^2 packets are dropped within t of the first drop.
    The allowed difference is 5 %.
    """
    rows = []
    for key, group in groups("probes", probes):
        link, group = link_of(links, key), group.sort_values("sequence")
        arrived = group.sent_at_s.astype(float) + group.delay_ms.astype(float) / 1000
        arrived, at = arrived.bfill(), group.sent_at_s.max() + link.delay_ms / 1000
        drops = arrived[group.lost & (arrived < at)].to_numpy(dtype=float)
        row = row_of(key, "drop-law", "packets", np.nan, percent(LAW_SHARE), len(drops))
        if len(drops):
            interval_s = (CODEL_INTERVAL_MS if pd.isna(link.codel_interval_ms) else link.codel_interval_ms) / 1000
            due = np.concatenate([[0], np.cumsum(interval_s / np.sqrt(np.arange(1, len(group))))])
            expected = int((due <= at - drops[0]).sum())
            row |= judged(expected, float(len(drops)), np.nan, np.nan, LAW_SHARE * expected)
        rows.append(row)
    return Verdicts.of(rows)


def marks(runs: pd.DataFrame, transfers: pd.DataFrame, links: pd.DataFrame) -> Verdicts:
    """
    Judge whether links with ECN marked some packets of TCP, and dropped none of them.

    The receiver's kernel counts the marks; no drop means that TCP retransmitted nothing.
    """
    rows = []
    for key, group in groups("probe_runs", runs):
        sent = matching(transfers, key)
        if _is_on(link_of(links, key).ecn) and len(sent):
            marked, again = int(group.packets_marked.sum()), float(sent.retransmits.sum())
            row = row_of(key, "ecn", "segments", np.nan, "none retransmitted, at least one marked", marked)
            row |= judged(0.0, again, np.nan, np.nan, 0.0, f"{count(marked, 'packet')} arrived with the mark")
            rows.append(row if marked else row | {"verdict": OUTSIDE})
    return Verdicts.of(rows)


def schedule(probes: pd.DataFrame, runs: pd.DataFrame, links: Mapping[tuple[str, str], Any]) -> Verdicts:
    """
    Judge the delay, loss and rate of links whose settings change by a schedule, in each step of the schedule.

    Packets count from 150 ms after the start of a step to 10 ms before the next. If more is sent than the link can
    pass, the rate of arrivals is judged, with an allowed difference of 5 %. Otherwise two properties are judged: the
    median one-way delay, with an allowed difference of 1 ms + 1 %, and the loss, by its exact binomial interval.

    links: The `LinkSettings` of each direction.
    """
    rows = []
    for key, group in groups("probes", probes):
        link, [run] = links[key[1:]], matching(runs, key).itertuples()
        group = group.sort_values("sequence")
        sent = np.interp(group.sequence, group.sequence[~group.lost], group.sent_at_s[~group.lost].astype(float))
        sent, delay = sent - run.schedule_began_at_s, group.delay_ms.to_numpy(dtype=float, na_value=np.nan)
        offered = run.packet_bytes * 8 * (len(sent) - 1) / (sent[-1] - sent[0])
        ends = [step.at_s for step in link.schedule[1:]] + [link.repeat_s or np.inf]
        now = {"delay_ms": link.delay_ms, "loss": link.loss, "rate_bps": link.rate_bps}
        for step, end in zip(link.schedule, ends, strict=True):
            now |= {name: value for name in now if (value := getattr(step, name)) is not None}
            inside = (sent >= step.at_s + SETTLING_S) & (sent < min(end - EDGE_S, sent[-1]))
            lost, got = np.isnan(delay[inside]), delay[inside & ~np.isnan(delay)]
            if not len(got):
                continue
            since = f"from {step.at_s:g} s on"
            if now["rate_bps"] and now["rate_bps"] < offered:
                arrived = np.sort(sent[inside] + delay[inside] / 1000)[: len(got)]
                rate = run.packet_bytes * 8 * (len(arrived) - 1) / (arrived[-1] - arrived[0])
                row = row_of(key, "rate", "bit/s", np.nan, percent(RATE_SHARE), len(arrived))
                asked = now["rate_bps"]
                rows.append(row | judged(asked, rate, np.nan, np.nan, RATE_SHARE * asked, since))
                continue
            allowed = RTT_MS + RTT_SHARE * now["delay_ms"]
            row = row_of(key, "delay", "ms", LEVEL, f"{RTT_MS:g} ms + {percent(RTT_SHARE)}", len(got))
            rows.append(row | judged(now["delay_ms"], np.median(got), *order_interval(got, LEVEL), allowed, since))
            low, high = exact_binomial(int(lost.sum()), len(lost), LEVEL)
            row = row_of(key, "loss", "fraction", LEVEL, IN_INTERVAL, len(lost))
            rows.append(row | judged(now["loss"], lost.mean(), low, high, note=since))
    return Verdicts.of(rows)


def mtu(echoes: pd.DataFrame, links: pd.DataFrame) -> Verdicts:
    """
    Judge the MTU that links report in answer to echoes above it.

    A link that drops such packets silently (a black hole) must answer none of them, neither with an error nor a reply.
    """
    rows = []
    for key, group in groups("echoes", echoes):
        link = link_of(links, key)
        told = group.error.str.extract(r"mtu ?= ?(\d+)")[0].dropna().astype(float)
        if _is_on(link.mtu_black_hole):
            answers = float(len(told) + (~group.lost).sum())
            row = row_of(key, "black-hole", "answers", np.nan, "0 answers", len(group))
            rows.append(row | judged(0.0, answers, np.nan, np.nan, 0.0))
        else:
            row = row_of(key, "mtu", "bytes", np.nan, "0 bytes", len(told))
            asked = float(link.mtu_bytes)
            note = f"{(~group.lost).sum()} of {len(group)} echoes then came back in pieces"
            rows.append(row | judged(asked, told.iloc[0], np.nan, np.nan, 0.0, note) if len(told) else row)
    return Verdicts.of(rows)


def _is_on(flag: object) -> bool:
    return pd.notna(flag) and bool(flag)


class RelayCost(RowsResult):
    """
    Processor time that the relay, the process that emulates links, uses per packet, by the kernel's count.

    rows: One row per test: run_id, from_region, to_region, packets, packets_per_s, relay_us (processor time per packet,
        in microseconds), relay_share (of one processor, 0 to 1).
    """

    @property
    def sentence(self) -> str:
        parts = []
        for rate, rows in self.rows.groupby(self.rows.packets_per_s.round(-3)):
            low, high = rows.relay_us.min(), rows.relay_us.max()
            span = number(low) if len(rows) == 1 else f"{number(low)} to {number(high)}"
            parts.append(f"{span} µs per packet at {rate:,.0f} packets a second ({count(len(rows), 'test')})")
        return f"The relay uses {'; '.join(parts)}."


def relay_cost(runs: Sequence[pd.DataFrame]) -> RelayCost:
    """Compute the relay's processor time per packet; each of `runs` is table probe_runs of tests that ran alone."""
    rows = pd.concat(runs, ignore_index=True)
    per_s, each = rows.packets / rows.lasted_s, rows.relay_processor_s / rows.packets
    rows = rows[["run_id", "from_region", "to_region", "packets"]].assign(
        packets_per_s=per_s, relay_us=each * 1e6, relay_share=each * per_s
    )
    return RelayCost(rows)
