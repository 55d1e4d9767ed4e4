"""Decide whether one step of a rate search met its objective, from its programs' output."""

from __future__ import annotations

from collections import Counter
from math import ceil

from wanbench import open_loop


def judged(search, load, producers: list[list[dict]], groups: list[list[dict]]) -> dict:
    """
    The verdict on one step.

    Parameters
    ----------
    search : KafkaRateSearch
    load : KafkaOpenLoop
        The load at the rate of the step.
    producers, groups : list of list of dict
        Per-second output of each producing process and each group, from `OpenLoopSession.printed`.

    Returns
    -------
    dict
        value_ms (null: the record of this rank was lost), n and n_lost of the latency that counts, backlog_grew,
        fell_behind, and met: null if the generator fell behind.
    """
    counted = range(ceil(load.warmup_s - 1e-9), ceil(load.length_s - 1e-9))
    late, published = (_counts(producers, counted, name) for name in ("late", "publish"))
    n_due = _total(producers, counted, "n_due")
    if search.what == "publish":
        latency, n = published, n_due
    else:
        latency, n = _counts(groups, counted, "latency"), n_due * load.groups
    n_lost = max(n - sum(latency.values()), 0)
    value_us = open_loop.quantile(latency, search.quantile, n_lost)
    behind = open_loop.fell_behind(late, published)
    grew = open_loop.backlog_grew(_backlog(producers, counted), load.rate_records_per_s)
    within = value_us is not None and value_us <= 1_000 * search.objective_ms
    return {
        "value_ms": None if value_us is None else value_us / 1_000,
        "n": n,
        "n_lost": n_lost,
        "backlog_grew": grew,
        "fell_behind": behind,
        "met": None if behind else within and not n_lost and not grew,
    }


def _counts(programs: list[list[dict]], counted: range, name: str) -> Counter:
    """Records by latency value, over all programs and counted seconds."""
    counts: Counter = Counter()
    for lines in programs:
        for line in lines:
            if line["second"] in counted:
                values = line[name]
                counts.update(dict(zip(values[::2], values[1::2], strict=True)))
    return counts


def _total(programs: list[list[dict]], counted: range, name: str) -> int:
    return sum(line[name] for lines in programs for line in lines if line["second"] in counted)


def _backlog(producers: list[list[dict]], counted: range) -> list[int]:
    """Total backlog of all processes at the end of each counted second."""
    by_second: Counter = Counter()
    for lines in producers:
        for line in lines:
            by_second[line["second"]] += line["backlog"] or 0
    return [by_second[second] for second in counted]
