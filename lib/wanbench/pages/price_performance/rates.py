"""Rates of counters, such as a broker's metrics, across restarts of the counting process."""

from __future__ import annotations

import pandas as pd

KEY = ["run_id", "test_id", "attempt"]
SERIES = [*KEY, "source", "host", "node_id", "subject", "metric", "statistic"]
STARTED = "process_start_time_seconds"
COLUMNS = [*SERIES, "at_utc", "interval_s", "increase", "rate", "unit", "restarted"]


def rates(metrics: pd.DataFrame) -> pd.DataFrame:
    """
    Increase of cumulative metrics from one sample to the next, absolute and per second.

    Counters start at 0 again when their process restarts. The increase is then the later value alone, which misses what
    the first process counted after the earlier sample; `restarted` is true. A restart shows as a counter that fell,
    or as a new value of the broker's `process_start_time_seconds`. Missing samples make the interval longer.

    Parameters
    ----------
    metrics : DataFrame
        Table metrics; rows that are not cumulative or have no time are skipped.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, source, host, node_id, subject, metric, statistic, at_utc (the end of the interval),
        interval_s, increase, rate (per second), unit (of the increase), restarted. In order of series and time.

    Examples
    --------
    >>> from wanbench import tables
    >>> shared = {"source": "prometheus", "subject": "", "metric": "records_total", "unit": "", "cumulative": True}
    >>> samples = [("00:00:05", 150.0), ("00:00:00", 100.0), ("00:00:10", 20.0)]
    >>> rows = [{**shared, "source_file": "a", "at_utc": f"2026-01-01T{at}Z", "value": value} for at, value in samples]
    >>> rates(tables.from_rows("metrics", rows))[["increase", "rate", "restarted"]].values.tolist()
    [[50.0, 10.0, False], [20.0, 4.0, True]]
    """
    counted = metrics[metrics.cumulative & metrics.at_utc.notna()].sort_values("at_utc", kind="stable")
    counted = counted.merge(_starts(metrics), on=[*KEY, "source", "host", "node_id", "at_utc"], how="left")
    groups = counted.groupby(SERIES, dropna=False, sort=False)
    before = groups[["value", "at_utc", "started_s"]].shift()
    restarted = (counted.value < before.value) | (counted.started_s - before.started_s).abs().gt(0)
    increase = counted.value - before.value.where(~restarted, 0.0)
    interval_s = (counted.at_utc - before.at_utc).dt.total_seconds()
    result = counted.assign(interval_s=interval_s, increase=increase, rate=increase / interval_s, restarted=restarted)
    result = result[interval_s > 0]
    return result.sort_values([*SERIES, "at_utc"], kind="stable")[COLUMNS].reset_index(drop=True)


def _starts(metrics):
    """The start of the process at each sample, where it is reported."""
    keys = [*KEY, "source", "host", "node_id", "at_utc"]
    rows = metrics[(metrics.metric == STARTED) & metrics.at_utc.notna()]
    return rows.drop_duplicates(keys)[[*keys, "value"]].rename(columns={"value": "started_s"})
