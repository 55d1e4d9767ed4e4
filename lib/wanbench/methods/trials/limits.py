"""
Compute what limits the rate of a trial: its producers' window, the link's rate, or loss.

- window: A producer has a maximum number of requests in flight to a broker. Each request has one batch per partition
  that the broker leads, up to max.request.size. Per RTT the producer can send the requests in flight, or the window of
  the TCP connection if that is smaller.
- rate: The link's rate less background traffic and headers.
- loss: TCP's throughput on a lossy path (Mathis et al. 1997), one connection per producer and broker; not for BBR.

The trial's rate cannot exceed the lowest of the three limits. They are computed from the settings and from the RTTs of
the trial's pings, without a fit. Window and loss limit bytes per round trip, so the mean of 1/RTT counts, which exceeds
1/(mean RTT).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from wanbench.checks import check_kind, check_number
from wanbench.errors import ParameterError
from wanbench.formatting import count, number
from wanbench.methods.result import LEVEL, Estimate, Result, text_table
from wanbench.methods.result.means import geometric_mean
from wanbench.methods.tcp.models import MSS_BYTES, RANDOM, advertised_window_bytes, mathis_bps
from wanbench.methods.trials.rates import TrialRates

BITS = 8
PACKET_BYTES = 1500
IN_FLIGHT = 5  # Kafka's default of max.in.flight.requests.per.connection, and its maximum with idempotence.
MAX_REQUEST_BYTES = 1_048_576  # Kafka's default of max.request.size.
# The TCP window on Linux with the brokers' default socket.receive.buffer.bytes of 102,400.
CONNECTION_WINDOW_BYTES = float(advertised_window_bytes(2 * 102_400))
MIN_LOSSES = 10  # With fewer losses per connection in the counted seconds, a steady-state law does not apply.
Count = float | pd.Series
NAMES = ("window", "rate", "loss")
COLUMNS = ["by_window", "by_rate", "by_loss"]
METHOD = "t on log ratios over {}, with trials as independent units"
ASSUMPTION = (
    "The producers always have a full batch ready, only window, rate and loss limit them (not the processor), and "
    "requests have the RTT that pings measure"
)


@dataclass(frozen=True, repr=False)
class Limits(Result):
    """
    Measured rates of trials compared with the lowest of three limits.

    trials: Per trial: all columns of `TrialRates.rates`, and `rtt_ms` (harmonic mean of its pings in the counted
        seconds, else twice the requested delay), `measured` (batches/s), `by_window`, `by_rate`, `by_loss` (batches/s
        that each limit allows), `predicted` (the lowest of these), `limit` (its name), `reached` (measured over
        predicted), `losses` (mean number of packets that a connection loses in the counted seconds).
    reached: By limit: the geometric mean of measured over predicted, over the trials with this limit.
    source: The rates of the trials.
    basis: What the three limits were computed from.
    """

    trials: pd.DataFrame
    reached: dict[str, Estimate]
    source: TrialRates
    basis: str

    TITLE = "Means over the trials of each setting and limit"

    @property
    def sentence(self) -> str:
        return " ".join([*(estimate.sentence for estimate in self.estimates), self.basis])

    def table(self) -> pd.DataFrame:
        groups = self.trials.groupby(["setting", "limit"], sort=False, dropna=False)
        means = groups[["rtt_ms", *COLUMNS, "predicted", "measured"]].mean()
        means["reached"] = groups.reached.apply(lambda values: exp(np.log(values).mean()))
        means.insert(0, "n_trials", groups.size())
        return means.reset_index()

    def formatted_table(self) -> pd.DataFrame:
        return text_table(self.table())


def limits(rates: TrialRates, *, brokers: int, connection_window_bytes: float = CONNECTION_WINDOW_BYTES) -> Limits:
    """
    Compare the rate of each trial with the lowest of its limits.

    rates: The result of `trial_rates`.
    brokers: Number of brokers that lead partitions of the load, at most the number of partitions.
    connection_window_bytes: TCP window of a connection with fixed socket buffers; default: Linux's window for the
        brokers' default buffer. Give infinity if the brokers' setting is -1: the kernel then tunes the buffer.

    Raises ParameterError: no trial has all inputs: partitions, producers, batch_bytes, and a delay or pings.
    """
    check_number("brokers", brokers, 1, whole=True)
    rows = check_kind("rates", rates, TrialRates).rates
    size = rows.batch_log_bytes.fillna(rows.batch_bytes.astype("float64"))
    frame = rows.assign(rtt_ms=rows.harmonic_rtt_ms.fillna(2 * rows.delay_ms), measured=rows.batches_per_s)
    producers = rows.producers.astype("float64")
    topics = rows.topics.fillna(1).astype("float64")
    partitions = (topics * rows.partitions).astype("float64")
    per_producer = partitions / np.maximum(topics, 1)
    leaders = np.minimum(per_producer, np.minimum(partitions, brokers))
    load = (size, producers, leaders, per_producer)
    frame["by_window"] = window_batches_per_s(frame.rtt_ms, *load, connection_window_bytes)
    wire = PACKET_BYTES / MSS_BYTES
    requested = wire * rows.background_bps.astype("float64").fillna(0.0)
    left = rows.rate_bps.astype("float64").fillna(inf) - rows.background_wire_bps.fillna(requested)
    frame["by_rate"] = np.maximum(left, 0.0) / (BITS * size * wire)
    loss = rows.loss.astype("float64").fillna(0.0)
    lossy = mathis_bps(loss, frame.rtt_ms, constant=RANDOM) * producers * leaders / (BITS * size)
    frame["by_loss"] = np.where(loss > 0, lossy, inf)
    segments = frame.measured * size * rows.n_seconds / MSS_BYTES
    frame["losses"] = (loss * segments / (producers * leaders)).astype("float64")
    known = frame[COLUMNS].notna().all(axis=1) & (frame.measured > 0)
    if not known.any():
        raise ParameterError("no trial states the inputs of its limits: partitions, producers, batch_bytes, RTT")
    frame = frame[known].reset_index(drop=True)
    allowed = frame[COLUMNS].to_numpy(dtype=float)
    frame["predicted"] = allowed.min(axis=1)
    frame["limit"] = np.array(NAMES)[allowed.argmin(axis=1)]
    frame["reached"] = frame.measured / frame.predicted
    reached = {name: _reached(frame[frame.limit == name], name) for name in NAMES if (frame.limit == name).any()}
    return Limits(frame, reached, rates, _basis(brokers, int((~known).sum())))


def _basis(brokers: int, n_out: int) -> str:
    text = (
        f"There are three limits. By window: each producer has {IN_FLIGHT} requests in flight to each leading broker "
        f"(at most {brokers}), each with one batch per partition. By rate: the part of the link that the background "
        f"leaves, less headers ({MSS_BYTES:,} of {PACKET_BYTES:,} bytes are payload). By loss: the law of Mathis et "
        "al. 1997 for random loss."
    )
    out = f" {count(n_out, 'trial')} left out: no batch arrived, or a setting that its limits need is missing."
    return text + (out if n_out else "")


def window_batches_per_s(
    rtt_ms: ArrayLike, batch_bytes: ArrayLike, producers: Count, leaders: Count, partitions: Count, window: float = inf
) -> Count:
    """
    Compute the batches per second that the producers' requests in flight allow: producers x leaders x window / RTT.

    rtt_ms: The harmonic mean, if round trips vary.
    partitions, leaders: Number of partitions to which a producer writes, and of brokers that lead them.
    window: The TCP window of a connection, in bytes.

    >>> float(window_batches_per_s(100, 16_384, producers=3, leaders=1, partitions=1))
    150.0
    """
    batch = np.asarray(batch_bytes, dtype=float)
    per_request = np.maximum(np.minimum(partitions / leaders, np.floor(MAX_REQUEST_BYTES / batch)), 1.0)
    in_flight = np.minimum(IN_FLIGHT * per_request, window / batch)
    return producers * leaders * in_flight / (np.asarray(rtt_ms, dtype=float) / 1000)


def _reached(part: pd.DataFrame, name: str) -> Estimate:
    notes, losses = (), part.losses.median()
    if name == "loss" and losses < MIN_LOSSES:
        few = f"where loss is the limit, a connection loses about {number(losses, 0)} packets in the counted seconds"
        notes = (f"{few}: too few for a steady-state law, so measure longer",)
    # Whole seconds may start just before the batches of a round trip and end just after them, so one round trip may be
    # counted in excess. The law of loss is about mean rates, so it may be exceeded by chance.
    beyond = int((part.reached > 1 + part.rtt_ms / 1000 / part.n_seconds).sum())
    if beyond and name != "loss":
        notes += (
            f"{count(beyond, 'trial')} reached more than the {name} allows, by more than the batches of one round "
            "trip: the RTT of pings differs from that of requests, or a setting is not what the trial states",
        )
    about = {"quantity": f"measured over predicted, {name}", "method": METHOD.format(count(len(part), "trial"))}
    about["claim"] = f"Where the {name} is the limit, trials reach {{}} what the {name} allows"
    return geometric_mean(part.reached, LEVEL, assumption=ASSUMPTION, warnings=notes, **about)
