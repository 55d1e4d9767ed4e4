"""
Two links by turns (A B B A ...): how many times as much passes over one as over the other.

The trial is the unit. Each is compared with the one of the other link that was planned next to it, so that what
changes slowly acts on both; a steady drift is estimated and taken off. Beside it stand Welch's interval over trials,
which knows nothing of pairs, and the one that takes every second as independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from html import escape
from math import exp, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, number
from ..result import Estimate, Interval, Result, html, table
from ..time.compare import Comparison, compare_arms
from . import steadiness
from .rates import MEASURED, TrialRates

BESIDE = (
    "records_per_s",
    "throughput_bps",
    "rx_packets_per_s",
    "rx_own_packets_per_s",
    "tx_packets_per_s",
    "mean_latency_ms",
)
SAID = {
    "batches_per_s": "rate of batches",
    "records_per_s": "rate of records",
    "throughput_bps": "payload throughput",
    "rx_packets_per_s": "rate of packets towards the brokers, background included",
    "rx_own_packets_per_s": "rate of packets towards the brokers, background taken off",
    "tx_packets_per_s": "rate of packets from the brokers",
    "mean_latency_ms": "time to acknowledgement",
    "mean_rtt_ms": "RTT of pings",
}
PER_SECOND = {"batches_per_s": "batches", "records_per_s": "records", "throughput_bps": "records"}
DRIFT = (
    "least squares of the log ratio of each pair on the trials between its two measurements; t with {} degrees of "
    "freedom over pairs"
)
DRIFT_ASSUMPTION = "The drift is a steady one, in per cent per trial; pairs are independent of each other"
RESAMPLES, UNUSED = 1_000, 2
"""Of the bootstrap of medians; where only the means are wanted, hardly any."""
FLAT_OUT = (
    "producers that send as fast as they can fill their own buffers, so the time to acknowledgement is mostly the "
    "time that records wait there: it says how long the producers ran, not how far the brokers are"
)
OF_TRIALS = "Welch's interval over unpaired trials"
OF_SECONDS = "Welch's interval over single seconds"


@dataclass(frozen=True, repr=False)
class TwoLinks(Result):
    """
    Link b against link a.

    Attributes
    ----------
    ratio : Estimate
        b over a, of the mean of trials: paired where there are two pairs or more, else trial by trial.
    paired : Comparison or None
        Trials compared within pairs.
    by_trial : Comparison
        Trials without pairs, with every second that counts; its naive interval takes these as independent.
    drift_free : Estimate or None
        b over a (ratio of geometric means) with a steady drift taken off; None where the order of the trials cannot
        tell it apart.
    drift : Estimate or None
        What a trial is multiplied by per trial that was measured before it.
    beside : dict
        The ratio of other values, by column of `TrialRates.rates`.
    pairs : DataFrame
        One row per pair: `block`, `pair`, `a`, `b` (the value of either trial), `order_a`, `order_b`, `ratio`.
    trials : DataFrame
        Their rows of `TrialRates.rates`, with `link`: which of the two.
    """

    ratio: Estimate
    paired: Comparison | None
    by_trial: Comparison
    drift_free: Estimate | None
    drift: Estimate | None
    beside: dict[str, Estimate]
    pairs: pd.DataFrame
    trials: pd.DataFrame
    seconds: pd.DataFrame
    names: tuple[str, str]
    value: str

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        known = (self.ratio, self.drift_free, self.drift, *self.beside.values())
        return tuple(each for each in known if each is not None)

    def table(self) -> pd.DataFrame:
        """One row per number."""
        return table(self.estimates)

    def wording(self) -> str:
        """The sentence to quote, in which "times" and "per cent more" cannot be mistaken for each other."""
        return (self.paired or self.by_trial).sentence

    def within(self) -> pd.DataFrame:
        """
        The second view, inside the trials: one row per link.

        `autocorrelation` is of one second's count with the next one's, mean over trials; `sd_between_trials` that of
        the trials' means; `sd_if_independent` what it would be if seconds were independent draws (a second's standard
        deviation over the root of the seconds in a trial). Where the first is the larger, seconds are no replicates.
        """
        rows = []
        for name, part in self.trials.groupby("link", sort=False):
            own = self.seconds[self.seconds.link == name]
            single = own.groupby("trial")._value.std(ddof=1)
            rows.append(
                {
                    "link": name,
                    "n_trials": len(part),
                    "seconds_per_trial": part.n_seconds.mean(),
                    "autocorrelation": part.autocorrelation.mean(),
                    "sd_between_trials": part[self.value].std(ddof=1),
                    "sd_if_independent": sqrt((single**2).mean() / part.n_seconds.mean())
                    if len(own)
                    else np.nan,
                }
            )
        return pd.DataFrame(rows)

    DRAWN_BY = "trials_figures.two_links"

    def __str__(self) -> str:
        more = [self.drift_free.sentence] if self.drift_free is not None else []
        notes = dict.fromkeys(note for each in self.estimates for note in each.warnings)
        return " ".join([self.wording(), *more, *(f"Caution: {each}." for each in notes)])

    def _repr_html_(self) -> str:
        title = f"{self.names[1]} over {self.names[0]}"
        return f"<p>{escape(self.wording())}</p>" + html(self.estimates, title)


def compare_links(
    found: TrialRates,
    settings: Sequence[str] = ("internet", "private"),
    *,
    names: Sequence[str] | None = None,
    value: str = "batches_per_s",
    beside: Sequence[str] = BESIDE,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> TwoLinks:
    """
    How many times as much passes over the second link as over the first.

    A pair is the n-th trial of either link in a block of the plan: in A B B A the first two and the last two. A trial
    that was not measured keeps its place in the plan; its partner is in `by_trial` only. How often the interval of
    paired trials covers is counted by `make validity` (data/validity/trials.csv).

    Parameters
    ----------
    found : TrialRates
        What `trial_rates` made of the tables.
    settings : two str
        Settings a and b; patterns are allowed, such as "internet*".
    names : two str
        What to call them; default the settings without asterisks.
    value : str
        A column of `found.rates`, such as batches_per_s.
    beside : sequence of str
        Columns whose ratio is wanted too; those that are not known of every trial are left out.
    resamples, seed
        Of the bootstrap of medians, in `paired` and `by_trial`.

    Raises
    ------
    ParameterError
        For a setting that no measured trial has, or trials of both patterns.
    """
    level = check_level(level)
    settings = tuple(settings)
    names = tuple(names or (each.strip("*").strip() or each for each in settings))
    trials = of_links(found, settings, names, value)
    pairs = paired_trials(trials, value, names)
    notes = _notes(trials, pairs, found, value)
    by_trial = _by_trial(trials, found, value, names, level, seed, resamples)
    paired = _paired(pairs, value, names, level, seed, by_trial, resamples) if len(pairs) > 1 else None
    ratio = _said((paired or by_trial).means, notes)
    drift_free, drift = _drift(pairs, value, names, level)
    others = {}
    for name in beside:
        if name in trials and name != value and trials[name].notna().all() and (trials[name] > 0).all():
            own = paired_trials(trials, name, names)
            single = _by_trial(trials, found, name, names, level, seed, UNUSED)
            one = _paired(own, name, names, level, seed, single, UNUSED) if len(own) > 1 else single
            flat_out = name == "mean_latency_ms" and trials.target_records_per_s.isna().any()
            others[name] = _said(one.means, (FLAT_OUT,) if flat_out else ())
    columns = ["run_id", "test_id", "at_s", "second"]
    seconds = _seconds(trials, found, value)
    seconds = seconds[[each for each in (*columns, "link", "trial", "_value") if each in seconds]]
    return TwoLinks(ratio, paired, by_trial, drift_free, drift, others, pairs, trials, seconds, names, value)


def of_links(found: TrialRates, settings, names, value: str) -> pd.DataFrame:
    """
    The trials of two settings, with `link`, `trial` and `nth`; those without a positive value are left out.

    `nth` is a trial's place among those of its link in its block of the plan, whether these were measured or not.
    """
    if len(settings) != 2 or len(names) != 2 or names[0] == names[1]:
        raise ParameterError(
            f"two links are compared; given were {', '.join(map(str, settings)) or 'none'} "
            f"as {', '.join(map(str, names))}"
        )
    if value not in found.rates:
        raise ParameterError(f"value={value!r}: the trials have {', '.join(MEASURED)}")
    measured, missing = (_linked(frame, settings, names) for frame in (found.rates, found.left_out))
    rows = measured.assign(nth=_places(measured, missing))[measured[value] > 0].reset_index(drop=True)
    for name, setting in zip(names, settings, strict=True):
        if not (rows.link == name).any():
            known = ", ".join(dict.fromkeys(map(str, found.rates.setting))) or "none"
            raise ParameterError(
                f"no measured trial of setting {setting} with a positive {value}; there are {known}"
            )
    return rows.assign(trial=rows.run_id + " " + rows.test_id)


def _linked(rows: pd.DataFrame, settings, names) -> pd.DataFrame:
    """The rows of either link, with `link`."""
    if rows.empty:
        return rows.assign(link=None)
    fits = [rows.setting.map(lambda each, one=one: fnmatchcase(str(each), one)) for one in settings]
    fits = [fit.astype(bool) for fit in fits]
    both = rows[fits[0] & fits[1]]
    if len(both):
        raise ParameterError(f"setting {both.setting.iloc[0]!r} matches both {' and '.join(settings)}")
    link = np.select(fits, [0, 1], -1)
    return rows.assign(link=[names[k] if k >= 0 else None for k in link])[link >= 0]


def _places(measured: pd.DataFrame, missing: pd.DataFrame) -> pd.Series:
    block = ["run_id", "block", "link"]
    columns = [*block, "test_id"]
    planned = pd.concat(
        [frame[columns] for frame in (measured, missing) if len(frame)] or [measured[columns]]
    )
    return planned.groupby(block, dropna=False).test_id.rank(method="dense").iloc[: len(measured)]


def paired_trials(trials: pd.DataFrame, value: str, names) -> pd.DataFrame:
    """The n-th trial of link a with the n-th of link b in each block of each run, in the order of the plan."""
    rows = trials[trials.block.notna()].sort_values(["run_id", "block", "nth"])
    columns = ["run_id", "block", "nth", value, "order"]
    sides = [rows.loc[rows.link == name, columns] for name in names]
    both = sides[0].merge(sides[1], on=["run_id", "block", "nth"], suffixes=("_a", "_b"))
    both = both.rename(columns={f"{value}_a": "a", f"{value}_b": "b"})
    pair = both.run_id + " " + both.block.astype(str) + " " + both.nth.astype(int).astype(str)
    found = pd.DataFrame({"run_id": both.run_id, "block": both.block, "pair": pair, "a": both.a, "b": both.b})
    return found.assign(order_a=both.order_a, order_b=both.order_b, ratio=both.b / both.a)


def _notes(trials: pd.DataFrame, pairs: pd.DataFrame, found: TrialRates, value: str) -> tuple[str, ...]:
    notes = []
    settings = set(trials.setting)
    out = found.left_out[found.left_out.setting.isin(settings)]
    if len(out):
        why = ", ".join(f"{n:,} {each}" for each, n in sorted(out.reason.value_counts().items()))
        notes.append(f"{count(len(out), 'trial')} of these settings left out ({why})")
    nothing = int((found.rates.setting.isin(settings) & ~(found.rates[value] > 0)).sum())
    if nothing:
        notes.append(f"{count(nothing, 'trial')} without a positive {SAID.get(value, value)} left out")
    alone = len(trials) - 2 * len(pairs)
    if alone and len(pairs) > 1:
        notes.append(f"{count(alone, 'trial')} without a partner, not in the pairs")
    for column in ("counted_by", "window_rule"):
        if trials[column].nunique() > 1:
            kinds = ", ".join(f"{n} by {each}" for each, n in trials[column].value_counts().items())
            notes.append(f"trials are not all counted alike ({kinds})")
    own = found.seconds[found.seconds.setting.isin(settings)]
    return (*notes, *steadiness.cautions(steadiness.settled(own)))


def _seconds(trials: pd.DataFrame, found: TrialRates, value: str) -> pd.DataFrame:
    """A row per counted second, scaled so that a trial's mean is its value; a row per trial where none are known."""
    counted = PER_SECOND.get(value)
    key = ["run_id", "test_id"]
    own = found.seconds.merge(trials[[*key, "link", "trial", value]], on=key) if counted else pd.DataFrame()
    if len(own) and own.trial.nunique() == len(trials):
        mean = own.groupby("trial")[counted].transform("mean")
        return own.assign(_value=own[counted] * own[value] / mean)
    return trials.assign(_value=trials[value], second=0)


def _by_trial(trials, found, value, names, level, seed, resamples=RESAMPLES) -> Comparison:
    said = SAID.get(value, value)
    rows = _seconds(trials, found, value).rename(columns={"_value": said})
    result = compare_arms(
        rows, said, arm="link", arms=names, run="trial", time="second", unit=MEASURED.get(value, ""),
        level=level, seed=seed, resamples=resamples,
    )  # fmt: skip
    naive = replace(result.means.naive, method=OF_SECONDS if len(rows) > len(trials) else OF_TRIALS)
    return replace(result, means=_in_trials(replace(result.means, naive=naive)))


def _in_trials(contrast: Estimate) -> Estimate:
    return replace(contrast, basis=contrast.basis.replace(" run", " trial"))


def _paired(pairs, value, names, level, seed, by_trial: Comparison, resamples=RESAMPLES) -> Comparison:
    said = SAID.get(value, value)
    sides = [
        pairs[["pair"]].assign(link=name, **{said: pairs[k]}) for name, k in zip(names, "ab", strict=True)
    ]
    result = compare_arms(
        pd.concat(sides), said, arm="link", arms=names, block="pair", unit=MEASURED.get(value, ""),
        level=level, seed=seed, resamples=resamples,
    )  # fmt: skip
    naive = replace(result.means.naive, method=OF_TRIALS)
    means = replace(
        result.means,
        naive=naive,
        basis=_in_pairs(result.means.basis),
        method=_in_pairs(result.means.method),
        assumption=_in_pairs(result.means.assumption),
        warnings=tuple(each for each in result.means.warnings if "medians" not in each),
        others=(
            Interval(by_trial.means.method, by_trial.means.low, by_trial.means.high),
            by_trial.means.naive,
        ),
    )
    return replace(result, means=means)


def _in_pairs(text: str) -> str:
    return text.replace("block", "pair").replace("with both arms", "of trials")


def _said(contrast: Estimate, notes: tuple[str, ...]) -> Estimate:
    return replace(contrast, warnings=(*notes, *contrast.warnings))


def _drift(pairs, value, names, level) -> tuple[Estimate | None, Estimate | None]:
    """The ratio with a steady drift taken off, and the drift: least squares over pairs."""
    apart = (pairs.order_b - pairs.order_a).to_numpy(dtype=float)
    if len(pairs) < 3 or np.ptp(apart) == 0:
        return None, None
    design = np.column_stack([np.ones(len(pairs)), apart])
    logs = np.log(pairs.ratio.to_numpy(dtype=float))
    inverse = np.linalg.inv(design.T @ design)
    params = inverse @ design.T @ logs
    freedom = len(pairs) - 2
    variance = float(((logs - design @ params) ** 2).sum()) / freedom
    reach = stats.t.ppf((1 + level) / 2, freedom)
    said, basis = SAID.get(value, value), f"{count(len(pairs), 'pair')} of trials"
    made = []
    for k, (quantity, claim) in enumerate(
        (
            (
                f"ratio without drift, {said}",
                f"With a steady drift taken off, the {said} of {names[1]} is {{}} that of {names[0]}",
            ),
            (f"drift per trial, {said}", f"From one trial to the next the {said} is multiplied by {{}}"),
        )
    ):
        half = reach * sqrt(max(variance * inverse[k, k], 0.0))
        made.append(
            Estimate(
                quantity=quantity,
                claim=claim,
                estimate=exp(params[k]),
                low=exp(params[k] - half),
                high=exp(params[k] + half),
                unit="times" if k == 0 else "",
                n=len(pairs),
                basis=basis,
                method=DRIFT.format(number(freedom)),
                assumption=DRIFT_ASSUMPTION,
                level=level,
            )
        )
    return made[0], made[1]
