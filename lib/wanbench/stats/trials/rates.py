"""
What each trial reached: one row per setting of link, topic and clients that was measured once.

A trial is the unit of every comparison on it: its seconds follow each other and are not independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from html import escape
from math import nan

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...formatting import count, number, quantity
from ..result import Result
from . import concurrent as beside
from . import producers, steadiness
from . import window as windows
from .attempts import attempts_of
from .window import KEY, Window

BATCH_HEADER_BYTES = 61
RECORD_HEADER_BYTES = 9
BY_LOG = "the log"
BY_LINES = "the producers' lines, batches taken as full"
NEEDED = (
    "tests", "trials", "loads", "producers", "producer_windows", "batches", "echoes", "transfers", "intervals",
    "link_samples", "probes",
)  # fmt: skip
COVERED, LEAST_COVERED = 0.9, 0.5
"""Parts of the counted seconds in which the background went on: below the one a caution, below the other left out."""
ALONE = "whose background did not go on while they counted"
MEASURED = {
    "batches_per_s": "batches/s",
    "records_per_s": "records/s",
    "throughput_bps": "bit/s",
    "rx_packets_per_s": "packets/s",
    "rx_own_packets_per_s": "packets/s",
    "tx_packets_per_s": "packets/s",
    "mean_latency_ms": "ms",
    "mean_rtt_ms": "ms",
}
"""Columns that a comparison may be of, with their units."""


@dataclass(frozen=True, repr=False)
class TrialRates(Result):
    """
    What the trials reached.

    Attributes
    ----------
    rates : DataFrame
        One row per trial that was measured, in the order in which they were (`order`, from 1): `run_id`, `test_id`,
        `attempt`, all columns of table trials, and

        - `batches_per_s`, `records_per_s`, `throughput_bps` (payload), `log_bytes_per_s`: means over the counted
          seconds; `counted_by` says out of what,
        - `batch_log_bytes`, `records_per_batch`: mean size of a batch in the log, header included, and its records,
        - `n_seconds`, `start_s`, `end_s`, `window_rule`: the seconds that count, and what they follow from;
          `share_counted`: part of all batches in the log that fell into them,
        - `autocorrelation`: of batches from one second to the next,
        - `mean_latency_ms`, `max_latency_ms`: from send to acknowledgement, of all records of all producers: of the
          lines inside the counted seconds (means weighted by their records), or without these of the tool's own sums
          after the warm-up; null unless each producer states them. `latency_by` says which. Percentiles are not given:
          those of several lines or producers cannot be put together,
        - `n_producers`, `n_producer_errors`,
        - `behind_s`: how far the slowest producer was behind the rate asked of it, at its last line inside,
        - `probe_records_per_s`: of probes beside it; null without,
        - what `trial_beside` says: round trips, background, packets and utilisation of the link, and
          `rx_own_packets_per_s`: packets towards the brokers less the background's.
    seconds : DataFrame
        Per trial and counted second: `at_s`, `second` (from 0), `batches`, `records`, `bytes`.
    shares : DataFrame
        Per trial and producer: `records_per_s` and its `share` of the trial's, of the lines inside the counted seconds,
        or without these of the tool's sums.
    left_out : DataFrame
        Planned trials and attempts that gave no row, with their levels and the reason.
    rule : str
        How the counted seconds were chosen.
    """

    rates: pd.DataFrame
    seconds: pd.DataFrame
    shares: pd.DataFrame
    left_out: pd.DataFrame
    rule: str

    def of(self, *settings: str) -> TrialRates:
        """Only the trials whose setting matches one of these patterns, such as "internet*"."""

        def chosen(frame: pd.DataFrame) -> pd.DataFrame:
            fits = [any(fnmatchcase(str(name), one) for one in settings) for name in frame.setting]
            return frame[np.array(fits, dtype=bool)].reset_index(drop=True)

        found = replace(self, **{name: chosen(getattr(self, name)) for name in PARTS})
        if found.rates.empty:
            known = ", ".join(map(str, self.rates.setting.unique())) or "none"
            raise ParameterError(
                f"no measured trial has the setting {' or '.join(settings)}; there are {known}"
            )
        return found

    def at(self, **levels) -> TrialRates:
        """Only the trials at these levels, such as `at(rate_bps=1e8)`; ParameterError if there are none."""
        wrong = [name for name in levels if name not in self.rates]
        if wrong:
            raise ParameterError(
                f"trials have no {', '.join(wrong)}; they have {', '.join(self.rates.columns)}"
            )
        kept = _at(self.rates, levels)
        if kept.empty:
            wanted = ", ".join(f"{name} {level}" for name, level in levels.items())
            raise ParameterError(f"no measured trial has {wanted}")
        own = kept[KEY]
        return replace(
            self,
            rates=kept,
            seconds=self.seconds.merge(own, on=KEY),
            shares=self.shares.merge(own, on=KEY),
            left_out=_at(self.left_out, levels),
        )

    def part(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table, such as link_samples, that belong to the attempts of these trials."""
        return frame.merge(self.rates[KEY], on=KEY)

    def marked(self, frame: pd.DataFrame) -> pd.DataFrame:
        """
        The same rows with their trial's `setting`, and `counts`: whether they lie in its counted seconds.

        A row lies where its columns start_s and end_s say, or else at_s, or at_utc with the interval_s before it.
        """
        own = self.rates[[*KEY, "setting", "start_s", "end_s"]]
        rows = frame.merge(own.rename(columns={"start_s": "_from", "end_s": "_to"}), on=KEY)
        if "start_s" in frame:
            first, last = rows.start_s, rows.end_s
        elif "at_s" in frame:
            first = last = rows.at_s
        else:
            last = (rows.at_utc - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
            first = last - rows.interval_s.fillna(0.0)
        rows["counts"] = (first >= rows._from) & (last <= rows._to)
        return rows[[*frame.columns, "setting", "counts"]]

    def settled(self, level: float = 0.95) -> pd.DataFrame:
        """Per setting, whether rates kept their level while they counted (`trial_steady.settled`)."""
        return steadiness.settled(self.seconds, level)

    def warnings(self) -> tuple[str, ...]:
        """What must be known of these trials before they are quoted."""
        said = []
        if len(self.left_out):
            why = ", ".join(
                f"{n:,} {each}" for each, n in sorted(self.left_out.reason.value_counts().items())
            )
            said.append(f"{count(len(self.left_out), 'trial')} left out ({why})")
        other = self.rates[self.rates.counted_by != BY_LOG]
        if len(other):
            said.append(
                f"{count(len(other), 'trial')} counted by {BY_LINES}, for want of a log: the batches are not measured"
            )
        by_log = int((self.rates.window_rule == windows.BY_LOG).sum())
        if by_log:
            said.append(f"{count(by_log, 'trial')} of which nobody said when its producers ran")
        short = int((self.rates.background_covered < COVERED).sum())
        if short:
            said.append(
                f"in {count(short, 'trial')} the background went on for less than all counted seconds"
            )
        said += [*producers.cautions(self.rates), *beside.cautions(self.rates)]
        errors = int((self.rates.n_producer_errors > 0).sum())
        if errors:
            said.append(f"in {count(errors, 'trial')} producers printed errors or warnings")
        return (*said, *steadiness.cautions(self.settled()))

    def table(self) -> pd.DataFrame:
        """One row per setting: trials, seconds counted, mean and standard deviation of what its trials reached."""
        rows = []
        for setting, part in self.rates.groupby("setting", sort=False, dropna=False):
            row = {"setting": setting, "n_trials": len(part), "seconds": int(part.n_seconds.sum())}
            for name in MEASURED:
                row[name] = part[name].mean()
                row[f"{name}_sd"] = part[name].std(ddof=1)
            rows.append(row)
        names = [each for name in MEASURED for each in (name, f"{name}_sd")]
        return pd.DataFrame(rows, columns=["setting", "n_trials", "seconds", *names])

    DRAWN_BY = "trials_figures.trials_in_order"

    def __str__(self) -> str:
        rates = self.rates
        if rates.empty:
            return f"No trial was measured. Caution: {'; '.join(self.warnings())}."
        means = rates.groupby("setting", sort=False, dropna=False).batches_per_s.agg(["mean", "size"])
        shown = [
            f"{quantity(row['mean'], 'batches/s')} in {count(int(row['size']), 'trial')} of {name}"
            for name, row in means.head(6).iterrows()
        ]
        more = f", and {len(means) - 6} more settings" if len(means) > 6 else ""
        outside = 1 - rates.share_counted.mean()
        cut = (
            f"; {number(100 * outside, 0)} % of the batches lay outside these" if np.isfinite(outside) else ""
        )
        said = f"{'; '.join(shown)}{more} ({number(rates.n_seconds.mean(), 0)} s counted of each on average{cut})."
        return " ".join([said, *(f"Caution: {each}." for each in self.warnings())])

    def _repr_html_(self) -> str:
        shown = self.table()[["setting", "n_trials", "seconds", *MEASURED]]
        shown = shown.rename(columns={name: f"{name} (mean)" for name in MEASURED})
        notes = "".join(f"<p>Caution: {escape(each)}.</p>" for each in self.warnings())
        body = shown.to_html(index=False, border=0, float_format=lambda value: number(value), na_rep="")
        return f"{body}<p>{escape(self.rule)}.</p>{notes}"


PARTS = ("rates", "seconds", "shares", "left_out")


def _at(frame: pd.DataFrame, levels: Mapping) -> pd.DataFrame:
    for name, level in levels.items():
        frame = frame[frame[name] == level] if name in frame else frame
    return frame.reset_index(drop=True)


def trial_rates(
    tables: Mapping[str, pd.DataFrame], *, warmup_s: float = 3.0, fewest_s: int = 2
) -> TrialRates:
    """
    What each trial reached, from the tables of one or several run folders.

    Only attempts that ended as done count, of each trial the last, and not those whose background stopped before half
    of the counted seconds were over, or began after. The counted seconds are whole seconds (of Unix
    time) in which all producers ran: those that the load noted, or else from the end of the last producer's warm-up to
    the last line of the one that ended first (`trial_window`). Batches are counted in the log of the brokers; without
    one, they are the records of the producers' lines, in batches taken as full, and `counted_by` says so.

    Parameters
    ----------
    tables : mapping
        Tables tests, trials, loads, producers, producer_windows, batches, echoes, transfers, intervals, link_samples,
        probes; all but the first two may be missing.
    warmup_s : float
        Cut where nobody says when a warm-up was over: neither a column `warmup_s` of table trials, nor the tool.
    fewest_s : int
        A trial with fewer whole seconds is left out.

    Raises
    ------
    ParameterError
        Without table tests or trials.
    """
    found = _tables(tables)
    attempts, left_out = attempts_of(found["tests"], found["trials"])
    levels = [*KEY, *(name for name in found["trials"].columns if name not in KEY)]
    rows, seconds, shares = [], [], []
    parts = {
        name: dict(list(found[name].groupby(KEY))) for name in ("producers", "producer_windows", "loads")
    }
    logs = dict(list(windows.one_broker_each(found["batches"]).groupby(KEY)))
    empty = {name: found[name].iloc[:0] for name in found}
    for trial in attempts.to_dict("records"):
        key = tuple(trial[name] for name in KEY)
        lines = parts["producer_windows"].get(key, empty["producer_windows"])
        log = logs.get(key, empty["batches"])
        asked = None if pd.isna(trial["producers"]) else int(trial["producers"])
        warm = _known(trial.get("warmup_s"))
        warm = warm if np.isfinite(warm) else warmup_s
        load = parts["loads"].get(key, empty["loads"])
        counted = windows.window(lines, log, load, producers=asked, warmup_s=warm, fewest_s=fewest_s)
        if counted.fault:
            left_out.append({name: trial[name] for name in levels} | {"reason": counted.fault})
            continue
        said = parts["producers"].get(key, empty["producers"])
        by_second = windows.per_second(log, counted) if len(log) else None
        about = {name: trial[name] for name in (*KEY, "setting")}
        inside = windows.inside(lines, counted)
        rows.append(trial | _rates(trial, counted, log, inside, by_second) | producers.latency(inside, said))
        rows[-1]["behind_s"] = producers.behind_s(inside)
        if by_second is not None:
            seconds.append(by_second.assign(**about, second=range(len(by_second))))
        shares.append(producers.shares(inside, said).assign(**about))
    rates = _beside(pd.DataFrame(rows, columns=[*attempts.columns, *COLUMNS]), found)
    alone = rates[rates.background_covered < LEAST_COVERED]
    left_out += alone[levels].assign(reason=ALONE).to_dict("records")
    rates = rates.drop(index=alone.index).reset_index(drop=True)
    return TrialRates(
        rates,
        _joined(seconds, [*KEY, "setting", "second", "at_s", *windows.COUNTS]).merge(rates[KEY], on=KEY),
        _joined(shares, [*KEY, "setting", "producer", "records_per_s", "share"]).merge(rates[KEY], on=KEY),
        pd.DataFrame(left_out, columns=[*levels, "reason"]),
        windows.RULE.format(f"{warmup_s:g} s"),
    )


COLUMNS = [
    *("n_seconds", "start_s", "end_s", "window_rule", "counted_by", "share_counted"),
    *("batches_per_s", "records_per_s", "throughput_bps", "log_bytes_per_s", "batch_log_bytes"),
    *("records_per_batch", "autocorrelation"),
    *("mean_latency_ms", "max_latency_ms", "latency_by", "n_producers", "n_producer_errors"),
    "behind_s",
]


def _tables(tables) -> dict[str, pd.DataFrame]:
    from ... import tables as declared

    missing = [name for name in ("tests", "trials") if name not in tables]
    if missing:
        known = ", ".join(map(str, tables))
        raise ParameterError(f"trials take the tables tests and trials; of {known} lack {', '.join(missing)}")
    return {name: tables[name] if name in tables else declared.from_rows(name, []) for name in NEEDED}


def _rates(trial, counted: Window, log, inside, by_second) -> dict:
    """Rates over the counted seconds, by the log or, without one, by what the producers printed."""
    n = counted.seconds
    row = {
        "n_seconds": n,
        "start_s": counted.start_s,
        "end_s": counted.end_s,
        "window_rule": counted.rule,
        "counted_by": BY_LOG,
        "autocorrelation": nan,
        "share_counted": nan,
    }
    if by_second is not None:
        batches, records, size = (float(by_second[name].sum()) for name in windows.COUNTS)
        row["share_counted"] = batches / float(log.batches.sum()) if log.batches.sum() else nan
        row["autocorrelation"] = _autocorrelation(by_second.batches.to_numpy(dtype=float))
        row["log_bytes_per_s"] = size / n
        row["batch_log_bytes"] = size / batches if batches else nan
    else:
        records = n * float(producers.records_per_s(inside).sum())
        full = records_per_full_batch(trial["batch_bytes"], trial["record_bytes"])
        batches, row["counted_by"] = records / full, BY_LINES
        row["log_bytes_per_s"] = row["batch_log_bytes"] = nan
    row["batches_per_s"], row["records_per_s"] = batches / n, records / n
    row["throughput_bps"] = 8 * row["records_per_s"] * _known(trial["record_bytes"])
    row["records_per_batch"] = records / batches if batches else nan
    return row


def records_per_full_batch(batch_bytes: float, record_bytes: float) -> float:
    """
    Uncompressed records without key that fit into a batch: 61 bytes of header, then about 9 a record (Kafka's record
    batch, version 2); at least one.

    >>> records_per_full_batch(16_384, 1_000)
    16.0
    """
    room = (_known(batch_bytes) - BATCH_HEADER_BYTES) / (_known(record_bytes) + RECORD_HEADER_BYTES)
    return max(1.0, float(np.floor(room))) if np.isfinite(room) else nan


def _known(value) -> float:
    return nan if value is None or pd.isna(value) else float(value)


def _autocorrelation(values: np.ndarray) -> float:
    centred = values - values.mean()
    total = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / total if len(values) > 2 and total > 0 else nan


def _beside(rates: pd.DataFrame, tables) -> pd.DataFrame:
    ends = rates[[*KEY, "from_region", "to_region", "start_s", "end_s"]]
    for part in (
        beside.round_trips(tables["echoes"]),
        beside.harmonic_rtts(tables["echoes"], ends),
        beside.background(tables["transfers"], tables["intervals"], ends),
        beside.on_the_link(tables["link_samples"], ends),
        beside.probes(tables["probes"]),
    ):
        rates = rates.merge(part, on=KEY, how="left")
    own = rates.rx_packets_per_s - rates.background_packets_per_s.fillna(0.0)
    return rates.assign(rx_own_packets_per_s=own)


def _joined(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    frames = [frame[columns] for frame in frames if len(frame)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
