"""Trials of broker sizes, one row each with rate, latency, price and resource use; failures too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

import pandas as pd

from wanbench.formatting import count, number
from wanbench.methods.lab import utilisation
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Result, text_table
from wanbench.methods.trials.processors import mean_use
from wanbench.methods.trials.rates import TrialRates

from .prices import usd_per_hour
from .rates import rates as counter_rates

QUANTILES = ("p50", "p95", "p99")
COLUMNS = ("messages_per_s", *(f"{name}_ms" for name in QUANTILES))


@dataclass(frozen=True, repr=False)
class SizeTrials(Result):
    """
    Trials of broker sizes.

    Attributes
    ----------
    trials : DataFrame
        One row per trial that was measured: run_id, test_id, attempt, setting, block, `messages_per_s` (by the log of
        the brokers, while all producers ran), `p50_ms`, `p95_ms`, `p99_ms` (from send to acknowledgement, after the
        warm-up: the largest quantile of any producer, an upper bound of that of all records, as percentiles cannot be
        averaged), `..._least_ms` (the smallest, a lower bound), `usd_per_hour` of all brokers, `usd_per_billion`
        messages; as shares of 1, NaN if not measured: `processor_share` (used share of the quota, of the broker that
        uses most of it), `waited` (share of periods in which the fullest broker used up its quota), `fullest_link`,
        `machine_busy`, `iowait`; and `brokers_sent_bps`, the rate that left their regions, headers included.
    failed : DataFrame
        Failed attempts, with setting and `reason`: a broker that crashed, for example.
    cautions : tuple of str
        The settings whose rate drifted within the counted seconds.
    """

    trials: pd.DataFrame
    failed: pd.DataFrame
    cautions: tuple[str, ...] = ()

    TITLE = "Trials by setting"

    @property
    def sentence(self) -> str:
        """How many trials were measured and failed."""
        each = ", ".join(
            f"{count(len(part), 'trial')} of {name}" for name, part in self.trials.groupby("setting", sort=False)
        )
        lost = "; ".join(f"{row.setting}: {row.reason}" for row in self.failed.itertuples())
        text = f"Measured: {each or 'nothing'}."
        return f"{text} {count(len(self.failed), 'attempt')} failed ({lost})." if lost else f"{text} None failed."

    def table(self) -> pd.DataFrame:
        """Per setting: trials, failures, and ranges of the measurements."""
        rows = []
        names = dict.fromkeys([*self.trials.setting, *self.failed.setting])
        for name in names:
            part = self.trials[self.trials.setting == name]
            row = {"setting": name, "trials": len(part), "failed": int((self.failed.setting == name).sum())}
            for column in COLUMNS:
                values = part[column].dropna()
                row[column.replace("_per_s", "/s").replace("_", " ")] = (
                    f"{number(values.min())} to {number(values.max())}" if len(values) else "unknown"
                )
            rows.append(row)
        return pd.DataFrame(rows)

    def formatted_table(self) -> pd.DataFrame:
        """The same as text."""
        return text_table(self.table())


def size_trials(
    rates: TrialRates,
    tables: Mapping[str, pd.DataFrame],
    *,
    brokers: int,
    price_factor: float | Mapping[str, float] = 1.0,
) -> SizeTrials:
    """
    The trials of broker sizes.

    Parameters
    ----------
    rates : TrialRates
    tables : mapping
        Tables of the run: tests, producers, and, if they exist, metrics and link_samples.
    brokers : int
        Number of brokers of the cluster, for trials with one size for all.
    price_factor : float or mapping
        Price paid over that in the plan, of all settings or by setting: 0.6 with a discount of 40 %.

    Raises
    ------
    ParameterError
        If a trial's brokers have no price.
    """
    frame = rates.rates[[*KEY, "setting", "block", "broker_sizes"]].assign(
        messages_per_s=rates.rates.records_per_s.astype(float)
    )
    frame["usd_per_hour"] = [
        (price_factor[name] if isinstance(price_factor, Mapping) else price_factor) * usd_per_hour(text, brokers, name)
        for text, name in zip(frame.broker_sizes, frame.setting, strict=True)
    ]
    frame["usd_per_billion"] = frame.usd_per_hour / (3600 * frame.messages_per_s) * 1e9
    frame = frame.merge(_latencies(tables["producers"]), on=KEY, how="left")
    frame = frame.merge(_processors(rates, tables, brokers), on=KEY, how="left")
    full = mean_use(rates, tables)
    full["machine_busy"], full["iowait"] = full.busy_percent / 100, full.iowait_percent / 100
    frame = frame.merge(full[[*KEY, "fullest_link", "machine_busy", "iowait"]], on=KEY, how="left")
    frame = frame.merge(_sent(rates, tables), on=KEY, how="left")
    tests = tables["tests"]
    failed = tests[tests.outcome != "done"]
    out = rates.left_out[["setting", "reason"]] if len(rates.left_out) else pd.DataFrame()
    rows = [failed[["setting", "reason"]], out[~out.setting.isin(failed.setting)] if len(out) else out]
    failures = pd.concat(rows, ignore_index=True)
    failures = failures if len(failures) else pd.DataFrame(columns=["setting", "reason"])
    return SizeTrials(frame, failures, rates.settled().cautions)


def _sent(rates: TrialRates, tables) -> pd.DataFrame:
    """Bits per second on all links that leave regions other than the producers', in each trial's counted seconds."""
    samples = tables.get("link_samples")
    if samples is None or samples.empty:
        return pd.DataFrame(columns=[*KEY, "brokers_sent_bps"]).astype({"attempt": "int64"})
    windows = rates.marked(utilisation.windows(samples)).merge(rates.rates[[*KEY, "from_region"]], on=KEY)
    windows = windows[windows.counts & (windows.link_from != windows.from_region)]
    each = windows.groupby([*KEY, "link_from", "link_to"]).carried_bps.mean()
    return each.groupby(level=KEY).sum().rename("brokers_sent_bps").reset_index()


def _latencies(producers: pd.DataFrame) -> pd.DataFrame:
    """The maximum and minimum of the producers' quantiles per trial; NaN unless each producer reports them."""
    totals = producers[~producers.warmup.astype(bool)]
    rows = []
    for key, part in totals.groupby(KEY):
        row = dict(zip(KEY, key, strict=True))
        for name in QUANTILES:
            values = part[f"{name}_latency_ms"].astype(float)
            row[f"{name}_ms"] = values.max(skipna=False)
            row[f"{name}_least_ms"] = values.min(skipna=False)
        rows.append(row)
    ends = [f"{name}{which}_ms" for name in QUANTILES for which in ("", "_least")]
    return pd.DataFrame(rows, columns=[*KEY, *ends])


def _processors(rates: TrialRates, tables, brokers: int) -> pd.DataFrame:
    """Per trial, in its counted seconds: share of the quota used, and of periods that exhausted it."""
    columns = [*KEY, "processor_share", "waited", "brokers_used"]
    metrics = tables.get("metrics")
    if metrics is None or not (metrics.source == "process").any():
        return pd.DataFrame(columns=columns).astype({"attempt": "int64"})
    each = counter_rates(metrics[metrics.source == "process"])
    each = rates.marked(each)
    each = each[each.counts]
    rows = []
    for key, part in each.groupby(KEY):
        text = rates.rates.loc[rates.rates[KEY].apply(tuple, axis=1) == key, "broker_sizes"].iloc[0]
        quotas = quotas_of(text, brokers)
        shares, waits, used = [], [], 0.0
        for node_id, own in part.groupby("node_id"):
            total = own.groupby("metric")[["increase", "interval_s"]].sum()
            rate = {name: row.increase / row.interval_s for name, row in total.iterrows()}
            busy = rate.get("user_s", nan) + rate.get("system_s", nan)
            used += busy
            quota = quotas[int(node_id) - 1] if int(node_id) <= len(quotas) else None
            if quota:
                shares.append(busy / quota)
                periods = rate.get("quota_periods", 0.0)
                waits.append(rate.get("quota_waits", nan) / periods if periods else nan)
        row = (max(shares, default=nan), max(waits, default=nan), used)
        rows.append((*key, *row))
    return pd.DataFrame(rows, columns=columns)


def quotas_of(text: str, brokers: int) -> list[float | None]:
    sizes = json.loads(text) if text else None
    each = sizes if isinstance(sizes, list) else [sizes] * brokers
    return [None if size is None else size.get("processors") for size in each]
