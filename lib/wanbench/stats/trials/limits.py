"""
What limits a trial: the window of its producers, its share of the link's rate, or loss.

- window: a producer has at most so many requests in flight to a broker, and each carries one batch per partition that
  the broker leads, up to max.request.size; the window of a TCP connection may be less. So many bytes pass per RTT.
- rate: what the background leaves of the link, less headers.
- loss: what TCP reaches on a lossy path (Mathis et al. 1997), one connection per producer and broker. It is for
  senders that halve their window: not for BBR.

A trial can reach no more than the least of the three. That is arithmetic on the settings and on the RTT of its pings;
nothing is fitted. Window and loss let bytes pass per round trip, and round trips differ: as many of them fit into a
second as the mean of 1/RTT says, which is more than 1 over the mean RTT.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from math import exp, inf, isfinite, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_level
from ...errors import ParameterError
from ...formatting import count, number, percent
from ..result import Estimate, Result, html
from ..tcp.mathis import MSS_BYTES, RANDOM, mathis_bps
from ..tcp.window import advertised_window_bytes
from ..time.series import welch_freedom
from .rates import TrialRates
from .two_links import of_links, paired_trials

BITS = 8
PACKET_BYTES = 1500
MAX_REQUEST_BYTES = 1_048_576
CONNECTION_WINDOW_BYTES = float(advertised_window_bytes(2 * 102_400))
FEWEST_LOSSES = 10
"""With fewer losses per connection while a trial counts, a law of the steady state says little of it."""
NAMES = ("window", "rate", "loss")
COLUMNS = ["by_window", "by_rate", "by_loss"]
METHOD = "t on log ratios over {}, with the {} as the unit"
ASSUMPTION = (
    "The producers always have a full batch ready, nothing but these three limits them (not the processor), and pings "
    "see the RTT that requests see"
)


@dataclass(frozen=True, repr=False)
class Limits(Result):
    """
    Measured against the least of three limits.

    Attributes
    ----------
    trials : DataFrame
        Per trial: all of `TrialRates.rates`, and `rtt_ms` (harmonic mean of its pings in the counted seconds, else
        twice the delay asked for),
        `batch_bytes_in_log`, `measured`, `by_window`, `by_rate`, `by_loss` (batches/s that each would allow),
        `predicted` (their least), `limit` (which that is), `reached` (measured over predicted), `losses` (packets that
        a connection loses in the counted seconds, on average).
    reached : dict
        Limit to Estimate: measured over predicted, geometric mean over the trials that it limits.
    """

    trials: pd.DataFrame
    reached: dict[str, Estimate]
    source: TrialRates
    level: float
    says: str

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.reached.values())

    def table(self) -> pd.DataFrame:
        """One row per setting and limit: trials, RTT, what each limit allows, what was measured, and their ratio."""
        columns = ["rtt_ms", *COLUMNS, "predicted", "measured"]
        groups = self.trials.groupby(["setting", "limit"], sort=False, dropna=False)
        found = groups[columns].mean()
        found["reached"] = groups.reached.apply(lambda each: exp(np.log(each).mean()))
        found.insert(0, "n_trials", groups.size())
        return found.reset_index()

    def ratio(self, settings=("internet", "private"), *, names=None) -> Ratio:
        """
        The ratio of two links that the limits predict from their pings, beside the measured one.

        Settings and names as in `compare_links`.
        """
        settings = tuple(settings)
        names = tuple(names or (each.strip("*").strip() or each for each in settings))
        trials = of_links(self.source, settings, names, "batches_per_s")
        own = self.trials.set_index(["run_id", "test_id"])
        at = pd.MultiIndex.from_frame(trials[["run_id", "test_id"]])
        trials = trials.assign(
            predicted=own.predicted.reindex(at).to_numpy(), limit=own.limit.reindex(at).to_numpy()
        )
        known = trials[trials.predicted.notna()]
        predicted, measured, off = (
            _of_pairs(known, what, names, self.level) for what in ("predicted", "batches_per_s", "reached")
        )
        limits = {name: known.limit[known.link == name].value_counts().to_dict() for name in names}
        return Ratio(predicted, measured, off, limits, names)

    DRAWN_BY = "limits_figure.limits"

    def __str__(self) -> str:
        notes = dict.fromkeys(note for each in self.estimates for note in each.warnings)
        return " ".join(
            [*(each.sentence for each in self.estimates), *(f"Caution: {each}." for each in notes)]
        )

    def _repr_html_(self) -> str:
        body = self.table().to_html(
            index=False, border=0, float_format=lambda value: number(value), na_rep="none"
        )
        return f"{body}<p>{escape(str(self))}</p><p>{escape(self.says)}</p>"


@dataclass(frozen=True)
class Ratio:
    """
    Link b over link a: `predicted` by the limits, `measured`, and `off`, the measured ratio over the predicted one;
    `limits` counts per link which limit is the least.
    """

    predicted: Estimate
    measured: Estimate
    off: Estimate
    limits: dict[str, dict[str, int]]
    names: tuple[str, str]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return (self.predicted, self.measured, self.off)

    def __str__(self) -> str:
        kinds = {
            name: " and ".join(f"the {limit} in {count(n, 'trial')}" for limit, n in counts.items())
            for name, counts in self.limits.items()
        }
        by = "; ".join(f"{name} by {said}" for name, said in kinds.items())
        apart = self.off.low > 1 or self.off.high < 1
        verdict = "which differs from it" if apart else "so no difference is shown"
        if not isfinite(self.off.low):
            verdict = "and nobody can say how far that is from it by chance"
        return (
            f"From settings and pings the limits predict {self.predicted.written} as many batches per second over "
            f"{self.names[1]} as over {self.names[0]}; measured are {self.measured.written} "
            f"({percent(self.measured.level)} interval {self.measured.written_interval or 'none'}; geometric mean of "
            f"{self.measured.basis}). That is {self.off.written} what is predicted (interval "
            f"{self.off.written_interval or 'none'}), {verdict} (limited: {by})."
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>" + html(self.estimates)


def limits(
    found: TrialRates,
    *,
    brokers: int,
    in_flight: int = 5,
    connection_window_bytes: float = CONNECTION_WINDOW_BYTES,
    max_request_bytes: float = MAX_REQUEST_BYTES,
    lossy_tcp: bool = True,
    level: float = 0.95,
) -> Limits:
    """
    What each trial could reach at the most, and what it reached.

    Parameters
    ----------
    brokers : int
        That lead partitions of the load; with fewer partitions than brokers, as many as partitions.
    in_flight : int
        max.in.flight.requests.per.connection; 5 is Kafka's own, and the most with idempotence.
    connection_window_bytes : float
        What TCP can have in flight per connection where socket buffers are fixed; by default what Linux makes of the
        brokers' own socket.receive.buffer.bytes of 102,400 (`models.window`). Infinite where the brokers have -1 and
        the kernel tunes them.
    max_request_bytes : float
        max.request.size of the producers.
    lossy_tcp : bool
        False for BBR, which loss hardly limits.

    Raises
    ------
    ParameterError
        Without the levels that it takes: partitions, producers, batch_bytes, delay or pings.
    """
    level = check_level(level)
    for name, value in (("brokers", brokers), ("in_flight", in_flight)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{name}={value!r}: a whole number from 1")
    rows = found.rates
    frame = rows.copy()
    frame["rtt_ms"] = rows.harmonic_rtt_ms.fillna(2 * rows.delay_ms)
    full = rows.batch_bytes.astype("float64")
    frame["batch_bytes_in_log"] = rows.batch_log_bytes.fillna(full)
    frame["measured"] = rows.batches_per_s
    partitions = (rows.topics.fillna(1) * rows.partitions).astype("float64")
    producers = rows.producers.astype("float64")
    leaders = np.minimum(partitions, brokers)
    per_producer = partitions / np.maximum(rows.topics.fillna(1).astype("float64"), 1)
    own_leaders = np.minimum(per_producer, leaders)
    size = frame.batch_bytes_in_log
    frame["by_window"] = window_batches_per_s(
        frame.rtt_ms,
        size,
        producers,
        own_leaders,
        per_producer,
        in_flight,
        connection_window_bytes,
        max_request_bytes,
    )
    wire = PACKET_BYTES / MSS_BYTES
    asked = wire * rows.background_bps.astype("float64").fillna(0.0)
    left = np.maximum(
        rows.rate_bps.astype("float64").fillna(inf) - rows.background_wire_bps.fillna(asked), 0.0
    )
    frame["by_rate"] = left / (BITS * size * wire)
    loss = rows.loss.astype("float64").fillna(0.0)
    lossy = mathis_bps(loss, frame.rtt_ms, constant=RANDOM) * producers * own_leaders / (BITS * size)
    frame["by_loss"] = np.where(loss > 0, lossy, inf) if lossy_tcp else inf
    segments = frame.measured * size * rows.n_seconds / MSS_BYTES
    frame["losses"] = (loss * segments / (producers * own_leaders)).astype("float64")
    known = frame[COLUMNS].notna().all(axis=1) & (frame.measured > 0)
    if not known.any():
        raise ParameterError(
            "no trial states what its limits follow from: partitions, producers, batch_bytes, RTT"
        )
    out = int((~known).sum())
    frame = frame[known].reset_index(drop=True)
    both = frame[COLUMNS].to_numpy(dtype=float)
    frame["predicted"] = both.min(axis=1)
    frame["limit"] = np.array(NAMES)[both.argmin(axis=1)]
    frame["reached"] = frame.measured / frame.predicted
    reached = {
        name: _reached(frame[frame.limit == name], name, level)
        for name in NAMES
        if (frame.limit == name).any()
    }
    said = (
        f"Window: {in_flight} requests in flight per producer and leading broker ({brokers} of these at the most), one "
        "batch per partition in each; rate: what the background leaves of the link, less headers "
        f"({MSS_BYTES} of {PACKET_BYTES:,} bytes are payload); loss: "
        f"{'Mathis et al. 1997, random loss' if lossy_tcp else 'left out'}."
        + (
            f" {count(out, 'trial')} not in use: reached nothing, or do not state what a limit follows from."
            if out
            else ""
        )
    )
    return Limits(frame, reached, found, level, said)


def window_batches_per_s(
    rtt_ms, batch_bytes, producers, leaders, partitions, in_flight=5, connection_window_bytes=inf,
    max_request_bytes=MAX_REQUEST_BYTES,
):  # fmt: skip
    """
    Batches a second that the producers' requests in flight allow: producers x leaders x window / RTT.

    Parameters
    ----------
    rtt_ms : float or array
        The harmonic mean, where round trips vary.
    leaders, partitions : float or array
        Brokers that lead the partitions a producer writes to, and these partitions.

    Examples
    --------
    >>> float(window_batches_per_s(100, 16_384, producers=3, leaders=1, partitions=1))
    150.0
    """
    a_batch = np.asarray(batch_bytes, dtype=float)
    a_request = np.maximum(np.minimum(partitions / leaders, np.floor(max_request_bytes / a_batch)), 1.0)
    in_the_air = np.minimum(in_flight * a_request, connection_window_bytes / a_batch)
    return producers * leaders * in_the_air / (np.asarray(rtt_ms, dtype=float) / 1000)


def _reached(part: pd.DataFrame, name: str, level: float) -> Estimate:
    logs = np.log(part.reached.to_numpy(dtype=float))
    notes = ()
    if name == "loss" and part.losses.median() < FEWEST_LOSSES:
        notes = (
            f"where loss limits, a connection loses some {number(part.losses.median(), 0)} packets while a trial "
            "counts: too few for a law of the steady state, so measure longer",
        )
    beyond = int((part.reached > 1 + part.rtt_ms / 1000 / part.n_seconds).sum())
    # Whole seconds may begin just before the batches of a round trip and end just after them; a law of mean rates, as
    # that of loss, may be exceeded by chance.
    if beyond and name != "loss":
        notes += (
            f"{count(beyond, 'trial')} reached more than the {name} allows, by more than the batches of one round "
            "trip: pings did not see the RTT of requests, or a setting is not what the trial states",
        )
    found = _of_logs(
        logs,
        f"measured over predicted, {name}",
        f"Where the {name} limits, trials reach {{}} what it allows",
        count(len(part), "trial"),
        "trial",
        level,
    )
    return replace(found, warnings=(*notes, *found.warnings))


def _of_pairs(trials: pd.DataFrame, value: str, names, level: float) -> Estimate:
    """Geometric mean over pairs of b over a; without pairs, of the trials."""
    trials = trials.assign(reached=trials.batches_per_s / trials.predicted)
    said = {"predicted": "predicted", "batches_per_s": "measured", "reached": "measured over predicted"}[
        value
    ]
    claim = f"The {said} ratio of {names[1]} to {names[0]} is {{}}"
    pairs = paired_trials(trials, value, names)
    if len(pairs) > 1:
        basis = f"{count(len(pairs), 'pair')} of trials"
        return _of_logs(
            np.log(pairs.ratio.to_numpy(dtype=float)), f"ratio, {said}", claim, basis, "pair", level
        )
    sides = [np.log(trials[value][trials.link == name].to_numpy(dtype=float)) for name in names]
    return _of_two(sides, f"ratio, {said}", claim, level)


def _of_logs(logs, quantity_, claim, basis, unit, level) -> Estimate:
    half, notes = nan, ()
    if len(logs) > 1:
        half = stats.t.ppf((1 + level) / 2, len(logs) - 1) * logs.std(ddof=1) / sqrt(len(logs))
    else:
        notes = (f"no interval: a single {unit}",)
    return _contrast(float(logs.mean()), half, quantity_, claim, len(logs), basis, unit, level, notes)


def _of_two(sides, quantity_, claim, level) -> Estimate:
    value, half, notes = float(sides[1].mean() - sides[0].mean()), nan, ()
    n = len(sides[0]) + len(sides[1])
    if min(map(len, sides)) > 1:
        variance = [each.var(ddof=1) / len(each) for each in sides]
        half = stats.t.ppf((1 + level) / 2, welch_freedom(variance, list(map(len, sides)))) * sqrt(
            sum(variance)
        )
    else:
        notes = ("no interval: a link with a single trial",)
    basis = f"{count(len(sides[0]), 'trial')} against {len(sides[1])}"
    return _contrast(value, half, quantity_, claim, n, basis, "trial", level, notes)


def _contrast(value, half, quantity_, claim, n, basis, unit, level, notes) -> Estimate:
    return Estimate(
        quantity=quantity_,
        claim=claim,
        estimate=exp(value),
        low=exp(value - half),
        high=exp(value + half),
        unit="times",
        n=n,
        basis=basis,
        method=METHOD.format(basis, unit),
        assumption=ASSUMPTION,
        level=level,
        warnings=notes,
    )
