"""
Compute the rates of Kafka trials (batches, records, payload and packets per second), one row per trial.

A trial measures one setting of link, topic and clients once. It is the unit of replication, because the seconds of a
trial are not independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import nan
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench import tables as declared
from wanbench.checks import check_columns, check_number, check_table
from wanbench.errors import MissingDataError, ParameterError
from wanbench.figures import primitives, theme
from wanbench.formatting import count, number, percent, quantity
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Fields, Result, reasons, text_table
from wanbench.methods.result.means import half_width
from wanbench.methods.trials import concurrent, counted_seconds
from wanbench.methods.trials.counted_seconds import CountedSeconds, attempts_of
from wanbench.methods.trials.steadiness import MAX_LISTED, Steadiness, steadiness

BATCH_HEADER_BYTES = 61  # Header of Kafka's record batch, version 2.
RECORD_HEADER_BYTES = 9  # Approximate bytes of a record without key and headers, besides its value.
BY_LOG = "the log"
BY_LINES = "the producers' lines, batches taken as full"
NEEDED = (
    "tests", "trials", "loads", "producers", "producer_windows", "batches", "echoes", "transfers", "intervals",
    "link_samples",
)  # fmt: skip
# A caution is given if background traffic covers a smaller share of the counted seconds; iperf3 may start up to a
# second late.
COVERED = 0.9
# A trial is left out if background traffic covers a smaller share of the counted seconds: most of the time it ran
# another setting.
MIN_COVERED = 0.5
NOT_COVERED = "whose background traffic covered too few counted seconds"
# Columns that can be compared, with label and unit.
MEASURED = {
    "batches_per_s": ("rate of batches", "batches/s"),
    "records_per_s": ("rate of records", "records/s"),
    "throughput_bps": ("payload throughput", "bit/s"),
    "rx_packets_per_s": ("rate of packets towards the brokers, background included", "packets/s"),
    "rx_own_packets_per_s": ("rate of packets towards the brokers, less background", "packets/s"),
    "tx_packets_per_s": ("rate of packets from the brokers", "packets/s"),
    "mean_latency_ms": ("time to acknowledgement", "ms"),
    "mean_rtt_ms": ("RTT of pings", "ms"),
}
DRAWN = "batches_per_s"
LEVEL = 0.95
MAX_SETTINGS = len(theme.SERIES_COLOURS)  # With more settings than colours, means and bands would overlap.
COLUMNS = [
    *("n_seconds", "start_s", "end_s", "window_rule", "counted_by", "share_counted"),
    *("batches_per_s", "records_per_s", "throughput_bps", "log_bytes_per_s", "batch_log_bytes"),
    *("mean_latency_ms", "n_producer_errors", "behind_s"),
]
REQUIRED = {"tests": (*KEY, "outcome", "started_at_utc"), "trials": ("run_id", "test_id", "setting", "producers")}
PARTS = ("rates", "seconds", "left_out")
QUANTILES = ("p50", "p95", "p99")  # Quantiles of latency that producers print.


@dataclass(frozen=True, repr=False)
class TrialRates(Result):
    """
    The rates of trials.

    rates: One row per measured trial, in the order of measuring (`order`, from 1): KEY, all columns of table trials,
        `COLUMNS`, and the columns of module `concurrent`. Means over the counted seconds: `batches_per_s`,
        `records_per_s`, `throughput_bps` (payload), `log_bytes_per_s`. `counted_by`: the source of these counts.
        `share_counted`: the share of all batches in the counted seconds. `batch_log_bytes`: mean size of a batch,
        header included. `mean_latency_ms`: from send to acknowledgement, over all records. `behind_s`: lag of the
        slowest producer. `rx_own_packets_per_s`: packets towards the brokers, without background traffic.
    seconds: Per trial and counted second: `at_s`, `second` (from 0), `batches`, `records`, `bytes`.
    left_out: Planned trials and attempts without a row in `rates`, with the columns of their trial and the `reason`.
    rule: How the counted seconds were chosen.
    """

    rates: pd.DataFrame
    seconds: pd.DataFrame
    left_out: pd.DataFrame
    rule: str

    TITLE = "Means over the trials of each setting"

    def of(self, *settings: str) -> TrialRates:
        """
        Return the trials whose setting matches a pattern, such as "internet*"; MissingDataError if there are none.
        """

        def chosen(frame: pd.DataFrame) -> pd.DataFrame:
            fits = [any(fnmatchcase(str(name), pattern) for pattern in settings) for name in frame.setting]
            return frame[np.array(fits, dtype=bool)].reset_index(drop=True)

        part = replace(self, **{name: chosen(getattr(self, name)) for name in PARTS})
        if part.rates.empty:
            measured = ", ".join(map(str, self.rates.setting.unique())) or "none"
            raise MissingDataError(f"No trial of {' or '.join(settings)} was measured; settings: {measured}.")
        return part

    def at(self, **levels: object) -> TrialRates:
        """Return the trials with these levels, such as `at(rate_bps=1e8)`; ParameterError if there are none."""
        check_columns("rates", self.rates, levels)
        kept = _at(self.rates, levels)
        if kept.empty:
            wanted = ", ".join(f"{name} {level}" for name, level in levels.items())
            raise ParameterError(f"no measured trial has {wanted}")
        own = kept[KEY]
        return replace(self, rates=kept, seconds=self.seconds.merge(own, on=KEY), left_out=_at(self.left_out, levels))

    def part(self, frame: pd.DataFrame | None) -> pd.DataFrame:
        """
        Return the rows of a table, such as link_samples, that belong to these trials; MissingDataError if it is None.
        """
        if frame is None:
            raise MissingDataError("the run has no table for this section, such as one of emulated links.")
        return frame.merge(self.rates[KEY], on=KEY)

    def marked(self, frame: pd.DataFrame) -> pd.DataFrame:
        """
        Keep the rows of these trials, and add two columns: `setting`, that of the row's trial, and `counts`, whether
        the row lies within the trial's counted seconds.

        A row covers start_s to end_s. In a table without these columns it covers the interval_s seconds before at_utc.
        """
        own = self.rates[[*KEY, "setting", "start_s", "end_s"]]
        rows = frame.merge(own.rename(columns={"start_s": "_from", "end_s": "_to"}), on=KEY)
        if "start_s" in frame:
            first, last = rows.start_s, rows.end_s
        else:
            last = (rows.at_utc - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
            first = last - rows.interval_s.fillna(0.0)
        rows["counts"] = (first >= rows._from) & (last <= rows._to)
        return rows[[*frame.columns, "setting", "counts"]]

    def settled(self) -> Steadiness:
        """Test whether the rate of each setting was steady over the counted seconds."""
        return steadiness(self.seconds)

    @property
    def sentence(self) -> str:
        rates = self.rates
        if rates.empty:
            return "No trial was measured."
        means = rates.groupby("setting", sort=False, dropna=False).batches_per_s.agg(["mean", "size"])
        listed = [
            f"“{name}” {number(row['mean'])} ({count(int(row['size']), 'trial')})"
            for name, row in means.head(MAX_LISTED).iterrows()
        ]
        more = f", and {len(means) - MAX_LISTED} more settings" if len(means) > MAX_LISTED else ""
        outside = 1 - rates.share_counted.mean()
        cut = (
            f"; {number(100 * outside, 0)} % of the batches fell outside these seconds" if np.isfinite(outside) else ""
        )
        seconds = f"On average {number(rates.n_seconds.mean(), 0)} s of each trial counted{cut}"
        return f"Batches/s by setting: {', '.join(listed)}{more}. {seconds}. {self.rule}."

    @property
    def cautions(self) -> tuple[str, ...]:
        rates, notes = self.rates, []
        if len(self.left_out):
            notes.append(f"{count(len(self.left_out), 'trial')} left out ({reasons(self.left_out)})")
        by_lines = int((rates.counted_by != BY_LOG).sum())
        if by_lines:
            notes.append(
                f"{count(by_lines, 'trial')} counted by {BY_LINES}, without a log: their batches are not measured"
            )
        by_log = int((rates.window_rule == counted_seconds.RULE_LOG).sum())
        if by_log:
            notes.append(f"no producer reported when it ran in {count(by_log, 'trial')}")
        short = int((rates.background_covered < COVERED).sum())
        if short:
            notes.append(f"in {count(short, 'trial')} the background did not cover all counted seconds")
        notes += [*counted_seconds.lag_cautions(rates)]
        errors = int((rates.n_producer_errors > 0).sum())
        if errors:
            notes.append(f"in {count(errors, 'trial')} producers printed errors or warnings")
        return (*notes, *self.settled().cautions)

    def table(self) -> pd.DataFrame:
        groups = self.rates.groupby("setting", sort=False, dropna=False)
        columns = {"n_trials": groups.size(), "seconds": groups.n_seconds.sum()}
        for name in MEASURED:
            columns |= {name: groups[name].mean(), f"{name}_sd": groups[name].std(ddof=1)}
        return pd.DataFrame(columns).reset_index()

    def formatted_table(self) -> pd.DataFrame:
        return text_table(self.table()[["setting", "n_trials", "seconds", *MEASURED]])

    def figure(self) -> go.Figure:
        rows = self.rates
        marks = theme.arm_marks(rows.setting)
        names = list(dict.fromkeys(rows.setting.astype(str)))
        label, unit = MEASURED[DRAWN]
        figure = go.Figure()
        _shade_blocks(figure, rows)
        for name in names:
            part = rows[rows.setting.astype(str) == name]
            shade, symbol = marks[name]
            figure.add_scatter(**points(part, DRAWN, name, shade, symbol))
            if len(names) <= MAX_SETTINGS:
                add_mean(figure, part[DRAWN], rows.order, shade)
        figure.update_xaxes(title="trial, in the order of measuring (grey: every second block)")
        figure.update_yaxes(title=f"{label} ({unit})", rangemode="tozero")
        cautions = [f"Caution: {caution}." for caution in self.cautions]
        groups = rows.groupby("setting", sort=False, dropna=False)[DRAWN].mean()
        means = f"{', '.join(f'{name} {quantity(mean, unit)}' for name, mean in groups.items())}"
        return theme.finish(
            figure,
            name="trials-in-order",
            title=theme.headline(means, f"What each trial reached: {label}"),
            subtitle=f"One point per trial. Lines: mean of a setting; bands: its {percent(LEVEL)} interval (trials as "
            "units).",
            alt=f"Trials in the order of measuring. {self}",
            caption=" ".join([f"{self.rule}. {count(len(rows), 'trial')}.", *cautions]),
            table=rows[["order", "block", "setting", "test_id", DRAWN, "n_seconds", "counted_by"]],
        )


def _at(frame: pd.DataFrame, levels: Mapping[str, object]) -> pd.DataFrame:
    for name, level in levels.items():
        frame = frame[frame[name] == level] if name in frame else frame
    return frame.reset_index(drop=True)


def trial_rates(tables: Mapping[str, pd.DataFrame], *, warmup_s: float = 3.0) -> TrialRates:
    """
    Compute the rates of each trial, from the tables of one or several run folders.

    The last successful attempt of a trial counts. Rates are means over the counted seconds: whole seconds of Unix time
    in which all producers ran (`counted_seconds`). Batches are counted in the brokers' log. Without a log, they are
    computed from the producers' records as if batches were full; `counted_by` states this. A trial meant to have
    background traffic is left out if that traffic covered less than half of its counted seconds.

    tables: Tables tests, trials, loads, producers, producer_windows, batches, echoes, transfers, intervals,
        link_samples; all but the first two may be missing.
    warmup_s: Warm-up to cut if neither column `warmup_s` of table trials nor the tool states it.

    Raises ParameterError: table tests or trials is missing.
    """
    check_number("warmup_s", warmup_s, 0)
    given = _given(tables)
    attempts, left_out = attempts_of(given["tests"], given["trials"])
    levels = [*KEY, *(name for name in given["trials"].columns if name not in KEY)]
    rows, seconds = [], []
    parts = {name: dict(list(given[name].groupby(KEY))) for name in ("producers", "producer_windows", "loads")}
    parts["batches"] = dict(list(counted_seconds.one_replica(given["batches"]).groupby(KEY)))
    for trial in attempts.to_dict("records"):
        key = tuple(trial[name] for name in KEY)
        lines, log, load, totals = (
            parts[name].get(key, given[name].iloc[:0]) for name in ("producer_windows", "batches", "loads", "producers")
        )
        planned = None if pd.isna(trial["producers"]) else int(trial["producers"])
        warm = _float(trial.get("warmup_s"))
        counted = counted_seconds.counted_seconds(
            lines, log, load, producers=planned, warmup_s=warm if np.isfinite(warm) else warmup_s
        )
        if counted.fault:
            left_out.append({name: trial[name] for name in levels} | {"reason": counted.fault})
            continue
        about = {name: trial[name] for name in (*KEY, "setting")}
        inside = counted.inside(lines)
        by_second = counted.per_second(log) if len(log) else None
        of_producers = {
            "mean_latency_ms": counted_seconds.mean_latency_ms(inside, totals),
            "n_producer_errors": int(totals.n_errors.sum()),
            "behind_s": counted_seconds.behind_s(inside),
        }
        rows.append(trial | _rates(trial, counted, log, inside, by_second) | of_producers)
        if by_second is not None:
            seconds.append(by_second.assign(**about, second=range(len(by_second))))
    rates = _with_concurrent(pd.DataFrame(rows, columns=[*attempts.columns, *COLUMNS]), given)
    uncovered = rates[rates.background_covered < MIN_COVERED]
    left_out += uncovered[levels].assign(reason=NOT_COVERED).to_dict("records")
    rates = rates.drop(index=uncovered.index).reset_index(drop=True)
    own, counts = [*KEY, "setting"], counted_seconds.COUNTS
    return TrialRates(
        rates,
        _joined(seconds, [*own, "second", "at_s", *counts]).merge(rates[KEY], on=KEY),
        pd.DataFrame(left_out, columns=[*levels, "reason"]),
        counted_seconds.RULE.format(f"{warmup_s:g} s"),
    )


def _given(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return all needed tables, with an empty one for each that is missing."""
    for name, columns in REQUIRED.items():
        check_columns(name, check_table(name, tables), columns)
    return {name: tables[name] if name in tables else declared.from_rows(name, []) for name in NEEDED}


def _rates(
    trial: Fields, counted: CountedSeconds, log: pd.DataFrame, inside: pd.DataFrame, by_second: pd.DataFrame | None
) -> Fields:
    """Return the rates over the counted seconds, from the log, or else from the producers' lines."""
    n = counted.n
    row: Fields = {"n_seconds": n, "start_s": counted.start_s, "end_s": counted.end_s, "window_rule": counted.rule}
    row |= dict.fromkeys(("share_counted", "log_bytes_per_s", "batch_log_bytes"), nan)
    row["counted_by"] = BY_LOG
    if by_second is not None:
        batches, records, size = (float(by_second[name].sum()) for name in counted_seconds.COUNTS)
        row["share_counted"] = batches / float(log.batches.sum()) if log.batches.sum() else nan
        row["log_bytes_per_s"] = size / n
        row["batch_log_bytes"] = size / batches if batches else nan
    else:
        records = n * float(counted_seconds.records_per_s(inside).sum())
        full = records_per_full_batch(trial["batch_bytes"], trial["record_bytes"])
        batches, row["counted_by"] = records / full, BY_LINES
    row["batches_per_s"], row["records_per_s"] = batches / n, records / n
    row["throughput_bps"] = 8 * row["records_per_s"] * _float(trial["record_bytes"])
    return row


def records_per_full_batch(batch_bytes: float, record_bytes: float) -> float:
    """
    Return how many uncompressed records without key fit into a batch; at least one.

    >>> records_per_full_batch(16_384, 1_000)
    16.0
    """
    room = (_float(batch_bytes) - BATCH_HEADER_BYTES) / (_float(record_bytes) + RECORD_HEADER_BYTES)
    return max(1.0, float(np.floor(room))) if np.isfinite(room) else nan


def _float(value: Any) -> float:
    return nan if value is None or pd.isna(value) else float(value)


def _with_concurrent(rates: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Add columns for concurrent pings and traffic to the rates."""
    spans = rates[[*KEY, "from_region", "to_region", "start_s", "end_s"]]
    for part in (
        concurrent.round_trips(tables["echoes"]),
        concurrent.harmonic_rtts(tables["echoes"], spans),
        concurrent.background(tables["transfers"], tables["intervals"], spans),
        concurrent.link_load(tables["link_samples"], spans),
    ):
        rates = rates.merge(part, on=KEY, how="left")
    own = rates.rx_packets_per_s - rates.background_packets_per_s.fillna(0.0)
    return rates.assign(rx_own_packets_per_s=own)


def _joined(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    frames = [frame[columns] for frame in frames if len(frame)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def largest_quantiles(producers: pd.DataFrame) -> pd.DataFrame:
    """Return, for each trial, the largest quantiles over its producers; NaN if a producer lacks them."""
    columns = {f"{name}_latency_ms": f"{name}_ms" for name in QUANTILES}
    totals = producers[~producers.warmup.astype(bool)].astype(dict.fromkeys(columns, float))
    largest = totals.groupby(KEY)[list(columns)].agg(lambda values: values.max(skipna=False))
    return largest.rename(columns=columns).reset_index()


def points(part: pd.DataFrame, value: str, name: str, shade: str, symbol: str) -> theme.Settings:
    """Return the arguments of a Plotly trace with a point per trial of `part`: column `value` against `order`."""
    text = [
        theme.plain(f"{row.test_id}: {row.n_seconds} s by {row.counted_by}")
        for row in part[["test_id", "n_seconds", "counted_by"]].itertuples(index=False)
    ]
    marker = {"size": 9, "color": shade, "symbol": symbol, "opacity": 0.85}
    about = {"name": f"{theme.plain(name)} ({count(len(part), 'trial')})", "marker": marker, "text": text}
    about["hovertemplate"] = "%{text}<br>%{y:.4g}<extra></extra>"
    return {"x": part.order, "y": part[value], "mode": "markers", **about}


def add_mean(figure: go.Figure, values: pd.Series, order: pd.Series, shade: str, **where: int) -> None:
    """Draw a line at the mean of the values, with a band for Student's interval, over the range of `order`."""
    values = values.dropna().to_numpy(dtype=float)
    if not len(values):
        return
    mean, x = float(values.mean()), [float(order.min()), float(order.max())]
    line = {"color": shade, "width": 2}
    figure.add_scatter(x=x, y=[mean] * 2, mode="lines", line=line, showlegend=False, hoverinfo="skip", **where)
    half = half_width(values, LEVEL)
    primitives.band(figure, x, [mean - half] * 2, [mean + half] * 2, color=shade, opacity=0.15, **where)


def _shade_blocks(figure: go.Figure, rates: pd.DataFrame) -> None:
    """Shade every second block in grey, if the trials of each block were measured together."""
    known = rates[rates.block.notna()]
    if known.block.nunique() < 2:
        return
    ends = known.groupby(["run_id", "block"]).order.agg(["min", "max"]).sort_values("min")
    if (ends["min"].to_numpy()[1:] <= ends["max"].to_numpy()[:-1]).any():
        return
    grey = {"fillcolor": theme.GRID, "opacity": 0.45, "line_width": 0, "layer": "below"}
    for first, last in ends.iloc[1::2].itertuples(index=False):
        figure.add_vrect(x0=first - 0.5, x1=last + 0.5, **grey)
