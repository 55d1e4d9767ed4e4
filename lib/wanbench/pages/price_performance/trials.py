"""Collect the trials of broker sizes, with their rates, latencies, prices and use of resources."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from wanbench.checks import check_number
from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.cost.deployment import Input
from wanbench.methods.cost.price_list import price
from wanbench.methods.lab import utilisation
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Result, text_table
from wanbench.methods.tails.distribution import Tail, decoded, summed
from wanbench.methods.trials.processors import mean_use
from wanbench.methods.trials.rates import QUANTILES, TrialRates, largest_quantiles
from wanbench.open_loop import LATE_MS, LATE_PART

SERIES = [*KEY, "source", "host", "node_id", "subject", "metric", "statistic"]
STARTED = "process_start_time_seconds"
COUNTED = [*SERIES, "at_utc", "interval_s", "increase", "rate", "unit", "restarted"]
END_TO_END = {f"end_to_end_{name}_ms": int(name[1:]) / 100 for name in QUANTILES}
COLUMNS = ("messages_per_s", *(f"{name}_ms" for name in QUANTILES), *END_TO_END)


def counter_rates(metrics: pd.DataFrame) -> pd.DataFrame:
    """
    Compute the increase of cumulative metrics between samples, and the increase per second.

    Returns one row per two successive samples of a series, with `increase`, `rate`, `restarted` and the time `at_utc`
    of the later sample. A restart sets counters to 0; it shows as a fallen counter or a new
    `process_start_time_seconds`. The increase is then the later value, without what the old process counted after the
    earlier sample.

    >>> from wanbench import tables
    >>> shared = {"source": "prometheus", "subject": "", "metric": "records_total", "unit": "", "cumulative": True}
    >>> samples = [("00:00:05", 150.0), ("00:00:00", 100.0), ("00:00:10", 20.0)]
    >>> rows = [{**shared, "source_file": "a", "at_utc": f"2026-01-01T{at}Z", "value": value} for at, value in samples]
    >>> counter_rates(tables.from_rows("metrics", rows))[["increase", "rate", "restarted"]].values.tolist()
    [[50.0, 10.0, False], [20.0, 4.0, True]]
    """
    counted = metrics[metrics.cumulative & metrics.at_utc.notna()].sort_values("at_utc", kind="stable")
    process = [*KEY, "source", "host", "node_id", "at_utc"]
    starts = metrics[(metrics.metric == STARTED) & metrics.at_utc.notna()].drop_duplicates(process)
    starts = starts[[*process, "value"]].rename(columns={"value": "started_s"})
    counted = counted.merge(starts, on=process, how="left")
    groups = counted.groupby(SERIES, dropna=False, sort=False)
    before = groups[["value", "at_utc", "started_s"]].shift()
    restarted = (counted.value < before.value) | (counted.started_s - before.started_s).abs().gt(0)
    increase = counted.value - before.value.where(~restarted, 0.0)
    interval_s = (counted.at_utc - before.at_utc).dt.total_seconds()
    result = counted.assign(interval_s=interval_s, increase=increase, rate=increase / interval_s, restarted=restarted)
    return result[interval_s > 0].sort_values([*SERIES, "at_utc"], kind="stable", ignore_index=True)[COUNTED]


def usd_per_hour(broker_sizes: str, brokers: int, setting: str) -> float:
    """
    Return the total price of a trial's brokers in USD per hour; ParameterError if a broker's size has no price.

    >>> usd_per_hour('[{"name": "a", "price_usd_per_hour": 0.5}, null]', 2, "a")
    0.5
    """
    sizes = json.loads(broker_sizes) if broker_sizes else None
    used = [size for size in (sizes if isinstance(sizes, list) else [sizes] * brokers) if size is not None]
    usd = [price for size in used if (price := size.get("price_usd_per_hour")) is not None]
    if not usd or len(usd) < len(used):
        raise ParameterError(f"setting {setting} has brokers without a price; allowed: sizes with price_usd_per_hour.")
    return float(sum(usd))


def per_processor_hour(provider: str, item: str, processors: int, **which: Any) -> Input:
    """
    Return the list price of an instance divided by its number of processors, in USD per hour.

    `which` has further arguments of `cost.price`, such as `region`.

    >>> round(per_processor_hour("aws", "m6i.2xlarge", 8).value, 4)
    0.048
    """
    check_number("processors", processors, 1, whole=True)
    listed = price(provider, item, **which)
    return Input(f"{item} per processor", listed.value / processors, "USD/hour", source=listed.source)


def paid_over_listed(provider: str, items: Iterable[str], term: str, **which: Any) -> dict[str, float]:
    """
    Return, for each item, the price under `term` divided by the on-demand price.

    `which` holds the arguments `region` and `prices` of `cost.price`.

    >>> paid_over_listed("aws", ["m6i.2xlarge"], "on demand")
    {'m6i.2xlarge': 1.0}
    """
    paid = {item: price(provider, item, term=term, **which).value for item in items}
    return {item: usd / price(provider, item, **which).value for item, usd in paid.items()}


@dataclass(frozen=True, repr=False)
class SizeTrials(Result):
    """
    Trials of broker sizes.

    trials: One row per trial. `messages_per_s`: from the brokers' logs, while all producers ran. `p50_ms`, `p95_ms`,
        `p99_ms`: from send to acknowledgement; the largest over producers, so an upper bound of the quantile of all
        records. `end_to_end_p50_ms` and so on: of the trickle's records, from due time to receipt; NaN if it fell
        behind. `usd_per_hour`: of all brokers. `usd_per_billion`: of messages. `brokers_sent_bps`: the rate that left
        the brokers' regions. The others are fractions, NaN if not measured: `waited` (periods in which the broker that
        waited most used up its quota), `fullest_link`, `machine_busy` and `iowait`.
    failed: Failed attempts: `setting` and `reason`.
    cautions: Warnings about rates that drifted.
    """

    trials: pd.DataFrame
    failed: pd.DataFrame
    cautions: tuple[str, ...] = ()  # pyright: ignore[reportIncompatibleMethodOverride]  # a field

    TITLE = "Trials by setting"

    @property
    def sentence(self) -> str:
        sizes = self.trials.groupby("setting", sort=False).size()
        each = ", ".join(f"{count(n, 'trial')} of “{name}”" for name, n in sizes.items())
        lost = "; ".join(f"“{row.setting}”: {row.reason}" for row in self.failed.itertuples())
        text = f"Measured: {each or 'no trial'}."
        return f"{text} {count(len(self.failed), 'attempt')} failed ({lost})." if lost else f"{text} No attempt failed."

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for name in dict.fromkeys([*self.trials.setting, *self.failed.setting]):
            part = self.trials[self.trials.setting == name]
            row = {"setting": name, "trials": len(part), "failed": int((self.failed.setting == name).sum())}
            for column in COLUMNS:
                low, high = part[column].min(), part[column].max()
                span = f"{number(low)} to {number(high)}" if pd.notna(low) else "unknown"
                row[column.replace("_per_s", "/s").replace("_", " ")] = span
            rows.append(row)
        return text_table(pd.DataFrame(rows))


def size_trials(
    rates: TrialRates,
    tables: Mapping[str, pd.DataFrame],
    *,
    brokers: int,
    price_factor: float | Mapping[str, float] = 1.0,
) -> SizeTrials:
    """
    Collect the trials of broker sizes with their prices, latencies and use of resources.

    `brokers` is the number of brokers in the cluster. `price_factor` is the paid over the planned price, one number for
    all settings or one by setting: 0.6 with a discount of 40 %.

    Raises ParameterError: a broker of a trial has no price.
    """
    frame = rates.rates[[*KEY, "setting", "block", "broker_sizes"]]
    frame = frame.assign(messages_per_s=rates.rates.records_per_s.astype(float))
    usd = [usd_per_hour(text, brokers, name) for text, name in zip(frame.broker_sizes, frame.setting, strict=True)]
    factor = frame.setting.map(price_factor) if isinstance(price_factor, Mapping) else price_factor
    frame["usd_per_hour"] = np.array(usd) * factor
    frame["usd_per_billion"] = frame.usd_per_hour / (3600 * frame.messages_per_s) * 1e9
    full = mean_use(rates, tables)
    full["machine_busy"], full["iowait"] = full.busy_percent / 100, full.iowait_percent / 100
    full = full[[*KEY, "fullest_link", "machine_busy", "iowait"]]
    parts = (largest_quantiles(tables["producers"]), full, _sent(rates, tables), _end_to_end(rates, tables))
    parts += (_ratio(rates, tables, "waited", "quota_waits", "quota_periods", ["node_id"]),)
    parts += (_ratio(rates, tables, "requests_each", "kafka_requests_total", "kafka_records_in_total"),)
    for part in parts:
        frame = frame.merge(part, on=KEY, how="left")
    about = ["setting", "reason"]
    failed = tables["tests"].query("outcome != 'done'")[about]
    out = pd.DataFrame(rates.left_out).reindex(columns=about)
    failures = pd.concat([failed, out[~out.setting.isin(failed.setting)]], ignore_index=True)
    return SizeTrials(frame, failures, rates.settled().cautions)


def _sent(rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the mean bit/s of each trial in its counted seconds, summed over the links that leave brokers' regions."""
    samples = tables.get("link_samples")
    if samples is None or samples.empty:
        return pd.DataFrame(columns=[*KEY, "brokers_sent_bps"]).astype({"attempt": "int64"})
    windows = rates.marked(utilisation.windows(samples)).merge(rates.rates[[*KEY, "from_region"]], on=KEY)
    windows = windows[windows.counts & (windows.link_from != windows.from_region)]
    each = windows.groupby([*KEY, "link_from", "link_to"]).carried_bps.mean()
    return each.groupby(level=KEY).sum().rename("brokers_sent_bps").reset_index()


def _end_to_end(rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Return the quantiles of the trickle's latencies in the counted seconds of each trial. A trial has none if the p99 of
    the delay that the trickle's own programs caused is over 5 ms and over 5 % of the p99 of the latency.
    """
    rows, frame = [], tables.get("open_loop_histograms")
    if frame is not None and len(frame):
        late_ms = tables["open_loop_loads"].set_index(KEY).late_p99_ms.astype(float)
        frame = frame[frame.what == "end to end"]
        seconds = rates.marked(frame.assign(end_s=frame.start_s + frame.length_s))
        for key, part in seconds[seconds.counts].groupby(KEY):
            values_us, counts = summed(map(decoded, part.histogram))
            tail = Tail("the trickle", values_us / 1000, counts, int(part.n_lost.sum()))
            if late_ms[key] <= max(LATE_MS, LATE_PART * tail.quantile(0.99)):
                rows.append((*key, *map(tail.quantile, END_TO_END.values())))
    return pd.DataFrame(rows, columns=[*KEY, *END_TO_END]).astype({"attempt": "int64"})


def _ratio(
    rates: TrialRates, tables: Mapping[str, pd.DataFrame], name: str, of: str, over: str, by: Iterable[str] = ()
) -> pd.DataFrame:
    """Return the ratio of the increases of two counters in each trial's counted seconds; the largest one of `by`."""
    metrics = tables.get("metrics")
    if metrics is None or not metrics.metric.isin([of, over]).any():
        return pd.DataFrame(columns=[*KEY, name]).astype({"attempt": "int64"})
    counted = rates.marked(counter_rates(metrics[metrics.metric.isin([of, over])]))
    sums = counted[counted.counts].groupby([*KEY, *by, "metric"]).increase.sum().unstack().reindex(columns=[of, over])
    return (sums[of] / sums[over].where(sums[over] > 0)).groupby(level=KEY).max().rename(name).reset_index()
