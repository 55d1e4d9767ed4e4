"""Estimates for the source's claims, under the names that `claims.price_performance` uses."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.result import Estimate

from .comparisons import compare_all
from .costs import SizeCosts
from .frontier import Frontier
from .over_time import OverTime


def evidence(
    costs: SizeCosts, frontier: Frontier | None, times: OverTime, *, plain: str, more_network: str | None = None
) -> dict[str, Estimate]:
    """
    Every measured estimate that a claim refers to.

    Parameters
    ----------
    plain, more_network : str
        A setting, and another that differs from it only in having twice the network rate.
    """
    trials = _with_requests(costs.trials, times)
    found = {"cost_lead": costs.lead, "rate_spread": _spread(trials, plain)}
    if frontier is not None:
        low, *_, high = frontier.latencies.settings
        found["producer_latency"] = replace(
            frontier.latencies.ratios[high, low],
            quantity="largest p99 over smallest",
            claim="The largest p99 of a setting is {} the smallest",
        )
    if more_network is not None:
        for name, column, what in (
            ("network_limit", "brokers_sent_bps", "bytes that brokers send"),
            ("network_iowait", "iowait", "share of time in IOWait"),
        ):
            ratio = _ratio(trials, column, more_network, plain)
            if ratio is not None:
                claim = f"With twice the network's rate, {what} are {{}} those with the plain one"
                found[name] = replace(ratio, quantity=f"{what}, twice the network", claim=claim)
    best, other = costs.rates.settings[-1], plain
    if best != other and (
        ratio := _ratio(trials.assign(each=trials.requests / trials.messages_per_s), "each", best, other)
    ):
        found["requests_over_messages"] = replace(
            ratio,
            quantity="requests ratio over messages ratio",
            claim=f"Between {best} and {other}, the ratio of requests is {{}} the ratio of messages",
        )
    return found


def _with_requests(trials: pd.DataFrame, times: OverTime) -> pd.DataFrame:
    """Mean requests per second of each trial in its counted seconds; NaN without broker metrics."""
    rows = times.rows[(times.rows.quantity == "requests") & (times.rows.at_s > 0)]
    keys = ["run_id", "test_id", "attempt"]
    return trials.merge(rows.groupby(keys).value.mean().rename("requests").reset_index(), on=keys, how="left")


def _ratio(trials: pd.DataFrame, column: str, of: str, over: str) -> Estimate | None:
    """The ratio of two settings; None if either has no positive value."""
    try:
        pair = trials[trials.setting.isin([of, over])]
        return compare_all(pair, column, "").ratios.get((of, over))
    except ParameterError:
        return None


def _spread(trials: pd.DataFrame, setting: str) -> Estimate:
    """Largest over smallest rate of a setting's repeats: descriptive, without an interval."""
    values = trials.messages_per_s[trials.setting == setting]
    return Estimate(
        quantity="largest rate over smallest of one size",
        claim=f"The largest rate of a repeat of {setting} is {{}} the smallest",
        estimate=float(values.max() / values.min()),
        low=float("nan"),
        high=float("nan"),
        unit="times",
        n=len(values),
        basis=count(len(values), "trial"),
        method="largest over smallest of the trials",
        assumption="none: it describes these trials",
        warnings=("more repeats would widen the range",),
    )
