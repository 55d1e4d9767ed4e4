"""A row per ordered pair of regions, out of the tables of a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from .. import tables
from ..errors import ParameterError

PAIR = ["from_region", "to_region"]
TEST = [*PAIR, "run_id", "test_id", "attempt"]
RTT = ("min", "mean", "median")


def summarise_pairs(run: Mapping[str, pd.DataFrame], rtt: str = "min") -> pd.DataFrame:
    """
    Table pairs: what all tests of a pair say together.

    Parameters
    ----------
    run : mapping of DataFrame
        Tables tests, echoes and transfers, as `read_run` gives them (of several runs: joined).
    rtt : "min", "mean" or "median"
        What stands for a test's round-trip time; `rtt_ms` is the median of it over the tests. Extra replies and
        lost echoes do not count. A time of which only an upper bound is known (Windows "time<1ms") counts as
        below all others; where that makes the result unknown, it is null.

    Notes
    -----
    A transfer counts for the pair in whose direction the data went: a reverse one for the opposite pair. UDP,
    whose rate was chosen, does not count, nor do transfers that ended in an error, nor echoes under a cut link.
    """
    from ..regions import light_rtt_ms

    if rtt not in RTT:
        raise ParameterError(f"rtt is {rtt!r}; allowed: {', '.join(RTT)}")
    tests, echoes, transfers = (_of_pairs(run, name) for name in ("tests", "echoes", "transfers"))
    echoes = echoes[~echoes.source_file.str.startswith("cut/") & ~echoes.duplicate]
    transfers = _by_sender(transfers)
    names = [frame[PAIR] for frame in (tests, echoes, transfers)]
    pairs = pd.concat(names).drop_duplicates().sort_values(PAIR)
    if pairs.empty:
        return tables.from_rows("pairs", [])
    pairs["from_cloud"] = pairs.from_region.str.partition(":")[0]
    pairs["to_cloud"] = pairs.to_region.str.partition(":")[0]
    pairs = pairs.set_index(PAIR)
    pairs["distance_km"] = [_distance_km(*pair) for pair in pairs.index]
    pairs["light_rtt_ms"] = light_rtt_ms(pairs.distance_km)
    done = tests[tests.outcome == "done"].drop_duplicates(["run_id", "test_id"])
    pairs["n_tests"] = done.groupby(PAIR).size()
    pairs["n_echoes"] = echoes.groupby(PAIR).size()
    pairs["n_lost"] = echoes.groupby(PAIR).lost.sum()
    pairs["rtt_ms"] = _rtt_ms(echoes, rtt)
    rates = transfers.groupby(TEST, dropna=False).throughput_bps.median()
    pairs["throughput_bps"] = rates.groupby(PAIR).median()
    pairs["n_transfers"] = transfers.groupby(PAIR).size()
    retransmits = transfers.retransmits.astype("float64").groupby([transfers[name] for name in PAIR])
    pairs["retransmits"] = retransmits.sum(min_count=1)
    counts = ["n_tests", "n_echoes", "n_lost", "n_transfers"]
    pairs[counts] = pairs[counts].fillna(0)
    return tables.validate("pairs", pairs.reset_index())


def _of_pairs(run, name):
    if name not in run:
        raise ParameterError(f"summarise_pairs needs table {name}; given were {', '.join(run) or 'none'}")
    frame = run[name]
    missing = frame[PAIR].isna().any(axis=1)
    if missing.any():
        raise ParameterError(f"table {name}, row {int(np.flatnonzero(missing)[0])}: no regions, so no pair")
    return frame


def _by_sender(transfers):
    kept = transfers[
        (transfers.protocol == "TCP") & transfers.throughput_bps.notna() & transfers.error.isna()
    ]
    reverse = kept.direction == "reverse"
    senders = kept.from_region.where(~reverse, kept.to_region)
    receivers = kept.to_region.where(~reverse, kept.from_region)
    return kept.assign(from_region=senders, to_region=receivers)


def _rtt_ms(echoes, rtt):
    """-inf stands for "below all others", so it goes through least, mean and median as it should."""
    replies = echoes[~echoes.lost]
    bounded = replies.rtt_ms.isna() & replies.error.str.startswith("time<").fillna(False).astype(bool)
    times = replies.rtt_ms.mask(bounded, -np.inf)
    by_test = times.groupby([replies[name] for name in TEST], dropna=False).agg(rtt)
    return by_test.groupby(PAIR).median().replace(-np.inf, np.nan)


def _distance_km(a, b):
    from ..regions import distance_km

    try:
        return distance_km(a, b)
    except ParameterError:
        return np.nan
