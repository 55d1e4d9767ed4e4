"""
Select the part of a trial that counts: its last successful attempt, its counted seconds (those in which all producers
ran after their warm-up), and the producers' lines within these seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, nan

import numpy as np
import pandas as pd

from wanbench.formatting import count, number
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Fields

COUNTS = ["batches", "records", "bytes"]
RULE_LOAD = "the load's own times"
RULE_PRODUCERS = "the producers' lines"
RULE_LOG = "the log alone"
RULE = (
    "A whole second counts if all producers ran in it and none was warming up. The load records these times; "
    "otherwise, seconds count from the end of the last warm-up to the last line of the first producer that ended. If "
    "no producer reports its times, all seconds of the log count except its first {} and its last"
)
MIN_SECONDS = 2  # A single whole second gives no reliable rate: batches may arrive in bursts.


@dataclass(frozen=True)
class CountedSeconds:
    """
    The counted seconds of a trial: whole seconds of Unix time from `start_s` (included) to `end_s` (not included).

    rule: How these seconds were chosen.
    fault: Why no second counts; "" if some do.
    """

    start_s: float = nan
    end_s: float = nan
    rule: str = ""
    fault: str = ""

    @property
    def n(self) -> int:
        """The number of counted seconds."""
        return 0 if self.fault else int(self.end_s - self.start_s)

    def inside(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Return the producers' lines (rows of table producer_windows) that lie wholly within the counted seconds."""
        printed = lines.printed_at_s.to_numpy()
        starts = printed - lines.length_s.fillna(0.0).to_numpy()
        return lines[(starts >= self.start_s) & (printed <= self.end_s)]

    def per_second(self, log: pd.DataFrame) -> pd.DataFrame:
        """Return a row per counted second from the brokers' log: at_s, batches, records, bytes."""
        seconds = np.arange(int(self.start_s), int(self.end_s))
        at = log.at_s.to_numpy() - int(self.start_s)
        inside = (at >= 0) & (at < len(seconds))
        sums = {"at_s": seconds}
        for name in COUNTS:
            sums[name] = np.zeros(len(seconds), dtype="int64")
            np.add.at(sums[name], at[inside], log[name].to_numpy()[inside])
        return pd.DataFrame(sums)


def counted_seconds(
    lines: pd.DataFrame, log: pd.DataFrame, load: pd.DataFrame, *, producers: int | None, warmup_s: float
) -> CountedSeconds:
    """
    Choose the counted seconds of a trial, by the rule in `RULE`.

    lines, log, load: The trial's rows of tables producer_windows, batches and loads.
    producers: Expected number of producers; None means as many as have lines.
    warmup_s: Warm-up to cut if none is reported, counted from a producer's first line or from the log's first second.
    """
    timed = lines[lines.printed_at_s.notna()]
    noted = load[["counts_from_s", "counts_until_s"]]
    noted = noted.astype("float64").dropna() if len(noted) else noted
    if len(noted):
        start, end, rule = ceil(noted.counts_from_s.max()), floor(noted.counts_until_s.min()), RULE_LOAD
    elif len(timed):
        spans = _spans(timed, warmup_s)
        if producers is not None and len(spans) < producers:
            return CountedSeconds(fault=f"where only {len(spans)} of {producers} producers reported times")
        start, end = ceil(max(first for first, _ in spans)), floor(min(last for _, last in spans))
        rule = RULE_PRODUCERS
    elif len(log):
        start, end, rule = ceil(log.at_s.min() + warmup_s), int(log.at_s.max()), RULE_LOG
    else:
        return CountedSeconds(fault="where neither a producer nor the log reports when the load ran")
    if end - start < MIN_SECONDS:
        return CountedSeconds(fault=f"with fewer than {MIN_SECONDS} whole seconds in which all producers ran")
    return CountedSeconds(float(start), float(end), rule)


def _spans(lines: pd.DataFrame, warmup_s: float) -> list[tuple[float, float]]:
    """Return, for each producer, the Unix times of the end of its warm-up and of its last line."""
    printed = lines.printed_at_s.to_numpy()
    starts = printed - lines.length_s.fillna(0.0).to_numpy()
    said = lines.warmup.astype("boolean")
    known, warm = said.notna().to_numpy(), said.fillna(True).to_numpy(dtype=bool)
    producers, names = pd.factorize(lines.producer)
    spans = []
    for own in (producers == k for k in range(len(names))):
        last = float(printed[own].max())
        if known[own].any():
            working = starts[own & ~warm]
            spans.append((float(working.min()) if len(working) else np.inf, last))
        else:
            spans.append((float(starts[own].min()) + warmup_s, last))
    return spans


def one_replica(log: pd.DataFrame) -> pd.DataFrame:
    """
    Keep, of the rows of each partition's replicas in the brokers' log, only those of the broker with the most batches.

    All replicas of a partition have the same batches, which must not be counted twice.
    """
    part = [*KEY, "topic", "partition"]
    sums = log.groupby([*part, "broker"], dropna=False, as_index=False).batches.sum()
    sums = sums.sort_values(["batches", "broker"], ascending=[False, True], kind="stable")
    return log.merge(sums.drop_duplicates(part)[[*part, "broker"]], on=[*part, "broker"])


def attempts_of(tests: pd.DataFrame, trials: pd.DataFrame) -> tuple[pd.DataFrame, list[Fields]]:
    """
    Return the attempts that count, in the order of measuring (`order`, from 1), and rows for the other attempts, with
    the `reason` why they do not count.

    Both have the columns of table trials, too. The last successful attempt of a trial counts. A failed attempt that was
    retried successfully is in neither.

    tests, trials: The tables of those names.
    """
    test = ["run_id", "test_id"]
    rows = trials.merge(tests[[*test, "attempt", "outcome", "started_at_utc"]], on=test, how="left")
    reason = pd.Series(None, index=rows.index, dtype=object)
    reason[rows.outcome != "done"] = "that " + rows.outcome.fillna("never began").replace(
        {"interrupted": "were interrupted"}
    )
    done = rows[rows.outcome == "done"].sort_values([*test, "attempt"])
    reason[done.index[done.duplicated(test, keep="last")]] = "that were repeated later"
    retried = rows.set_index(test).index.isin(done.set_index(test).index)
    reason[retried & (rows.outcome != "done")] = None
    out = rows[reason.notna()].assign(reason=reason[reason.notna()])
    kept = done[~done.duplicated(test, keep="last")]
    kept = kept.sort_values(["started_at_utc", *test], kind="stable").reset_index(drop=True)
    kept = kept.drop(columns="outcome").assign(attempt=kept.attempt.astype("int64"), order=kept.index + 1)
    levels = [name for name in trials.columns if name not in KEY]
    return kept, out[[*KEY, *levels, "reason"]].to_dict("records")


def attempts_with_loads(
    tables: Mapping[str, pd.DataFrame], columns: Sequence[str], loads: pd.DataFrame
) -> pd.DataFrame:
    """
    Return the attempts of open-loop trials, joined with their loads; column `why` says why an attempt does not count.

    `why` is "" if the attempt counts. Other attempts failed, were repeated later, or have a load with an error.

    tables: Tables tests and trials.
    columns: The columns of table trials to return.
    loads: Table open_loop_loads.
    """
    kept, out = attempts_of(tables["tests"], tables["trials"])
    attempts = pd.concat([kept, pd.DataFrame(out)], ignore_index=True).reindex(columns=[*KEY, *columns, "reason"])
    rows = attempts.merge(loads, on=KEY, how="left")
    reason, error = rows.pop("reason").astype("string"), rows.error.astype("string")
    return rows.assign(why=reason.str.removeprefix("that ").fillna(error).fillna("").astype(object))


SATURATED_S = 1.0  # The producers' reporting interval: a longer lag is more than the records in flight.


def records_per_s(inside: pd.DataFrame) -> pd.Series:
    """Return the records per second of each producer, from its lines within the counted seconds (`inside`)."""
    sums = inside[inside.length_s > 0].groupby("producer")[["records", "length_s"]].sum()
    return sums.records / sums.length_s


def behind_s(inside: pd.DataFrame) -> float:
    """Return the largest lag in s of a producer behind its target rate, at its last line; NaN without a target."""
    if inside.behind_s.isna().all():
        return nan
    last = inside.sort_values("window").groupby("producer").behind_s.last()
    return float(last.max()) if last.notna().any() else nan


def lag_cautions(rates: pd.DataFrame) -> list[str]:
    """Warn about trials in which acknowledgements lagged behind the target rate."""
    behind = rates.behind_s[rates.behind_s > SATURATED_S]
    if behind.empty:
        return []
    return [
        f"in {count(len(behind), 'trial')} acknowledgements lagged behind the target rate by up to "
        f"{number(behind.max())} s: if the lag keeps growing, the system is saturated, and latencies grow too"
    ]


def mean_latency_ms(inside: pd.DataFrame, producers: pd.DataFrame) -> float:
    """
    Return the mean latency of all records in ms, from the producers' lines `inside` the counted seconds, or else from
    their totals; NaN unless all producers report latencies.
    """
    for rows in (inside, producers[~producers.warmup]):
        columns = [rows[name].to_numpy(dtype="float64", na_value=nan) for name in ("mean_latency_ms", "records")]
        mean, records = np.array(columns)[:, columns[1] != 0]
        if len(mean) and not np.isnan([mean, records]).any():
            return float(np.average(mean, weights=records))
    return nan
