"""Rates of counters, such as those of a broker's metrics, over a restart of the process that counts."""

from __future__ import annotations

import re

import pandas as pd

KEY = ["run_id", "test_id", "attempt"]
SERIES = [*KEY, "source", "host", "node_id", "subject", "metric", "statistic"]
STARTED = "process_start_time_seconds"
COLUMNS = [*SERIES, "at_utc", "interval_s", "increase", "rate", "unit", "restarted"]


def rates(metrics: pd.DataFrame) -> pd.DataFrame:
    """
    What the cumulative metrics grew by between one sample and the next, and per second.

    Where a process was started anew between two samples, its counters began at 0 again: the increase is then the
    later value alone, less than the truth by what was counted between the earlier sample and the end of the first
    process, and `restarted` says so. A restart is known by a counter that fell, or by another value of the metric
    `process_start_time_seconds` of the same broker. Where samples are missing the interval is longer.

    Parameters
    ----------
    metrics : DataFrame
        Table metrics; rows that are not cumulative, or without a time, are passed over.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, source, host, node_id, subject, metric, statistic, at_utc (the end of the interval),
        interval_s, increase, rate (per second), unit (of the increase), restarted. In order of series and time.

    Examples
    --------
    >>> from wanbench import tables
    >>> said = {"source": "prometheus", "subject": "", "metric": "records_total", "unit": "", "cumulative": True}
    >>> seen = [("00:00:00", 100.0), ("00:00:05", 150.0), ("00:00:10", 20.0)]
    >>> rows = [{**said, "source_file": "a", "at_utc": f"2026-01-01T{at}Z", "value": value} for at, value in seen]
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
    found = counted.assign(
        interval_s=interval_s, increase=increase, rate=increase / interval_s, restarted=restarted
    )
    found = found[interval_s > 0]
    return found.sort_values([*SERIES, "at_utc"], kind="stable")[COLUMNS].reset_index(drop=True)


def _starts(metrics):
    """When the process of each sample had been started, where it says so."""
    keys = [*KEY, "source", "host", "node_id", "at_utc"]
    rows = metrics[(metrics.metric == STARTED) & metrics.at_utc.notna()]
    return rows.drop_duplicates(keys)[[*keys, "value"]].rename(columns={"value": "started_s"})


def label(subjects: pd.Series, name: str) -> pd.Series:
    """
    One label out of subjects such as "request=Produce, version=13"; null where it is not there.

    >>> label(pd.Series(["request=Produce, version=13", "topic=bench"]), "request").fillna("").tolist()
    ['Produce', '']
    """
    return subjects.str.extract(rf"(?:^|, ){re.escape(name)}=(.*?)(?:, [a-zA-Z_]\w*=|$)", expand=False)


def by_label(found: pd.DataFrame, metric: str, name: str) -> pd.DataFrame:
    """
    Rates of one metric by one of its labels, summed over the others, such as requests by kind over their versions.

    Parameters
    ----------
    found : DataFrame
        As `rates` returns it.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, host, node_id, at_utc, interval_s, `name`, rate, restarted.
    """
    rows = found[found.metric == metric]
    rows = rows.assign(**{name: label(rows.subject, name)})
    keys = [*KEY, "host", "node_id", "at_utc", "interval_s", name]
    return (
        rows.groupby(keys, dropna=False)
        .agg(rate=("rate", "sum"), restarted=("restarted", "any"))
        .reset_index()
    )
