"""
What replication over long links lets a Kafka cluster reach, by arithmetic from its settings; nothing is fitted.

- producers: so many requests in flight per producer and leading broker, each with one batch per partition, until they
  are acknowledged. With acks=all that takes the RTT to the leader and the time to replicate, which is at the least the
  RTT of the slowest follower: a fetch that waits takes the records along, and the next one tells that they arrived.
- acks: a broker processes one request per connection at a time (Kafka protocol guide, "Network"). With acks=all a
  request is done when replicated, and those behind it wait at the broker; requests in flight then hide the RTT to the
  leader only, and one request per producer and leader passes in the time to replicate. Where fetches never wait, as
  other records keep them busy, that is two RTTs, so that about half of what is allowed here is reached.
- fetch: a follower has one fetch in flight per leader and fetcher thread; it returns at most replica.fetch.max.bytes
  per partition, and replica.fetch.response.max.bytes in all, per RTT
- buffer: the receive buffer of the replica fetcher bounds what TCP has in flight to it, whatever the fetch asks for
- rate: of the link from a leader to a follower

A fetch that finds nothing waits at the leader, for up to replica.fetch.wait.max.ms. The first record answers it
(replica.fetch.min.bytes is 1), so the wait does not limit throughput. What accumulates until a fetch comes is
throughput times RTT, so it is no limit of its own, either.

Every limit is an upper bound. It takes loads as spread evenly over leaders, followers and fetchers, connections that
fill their window at once, and a processor with time to spare.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, nan

import numpy as np
import pandas as pd
from scipy import stats

from ...checks import check_columns, check_level, refusal
from ...formatting import count, number
from ..factorial.runs import reasons, split_rows
from ..result import Estimate, Result, text_table
from ..tcp.window import BITS
from .in_flight import connection_window_bytes, fetched_bytes_per_s, produced_bytes_per_s, request_bytes
from .limits import IN_FLIGHT
from .means import half_width, ratio_estimate

NEEDED = ("rtt_ms", "batch_bytes", "producers", "partitions", "brokers", "replication")
DEFAULTS = {
    "follower_rtt_ms": None,
    "acks": "all",
    "max_in_flight": IN_FLIGHT,
    "fetchers": 1,
    "fetch_max_bytes": 1_048_576,
    "fetch_response_max_bytes": 10_485_760,
    "replica_receive_buffer_bytes": 65_536,
    "broker_receive_buffer_bytes": 102_400,
    "link_rate_bps": inf,
}
"""Kafka's own, for columns that a table lacks and for missing values; without `follower_rtt_ms`, `rtt_ms`."""
NAMES = ("producers", "acks", "fetch", "buffer", "rate")
COLUMNS = [f"by_{name}" for name in NAMES]
SETTINGS = [*NEEDED, *DEFAULTS]
LIMITS = {
    "producers": "requests in flight limit",
    "acks": "acknowledgements in turn limit",
    "fetch": "size of a fetch limits",
    "buffer": "fetchers' receive buffer limits",
    "rate": "link's rate limits",
}
MIN_SETTINGS = 3
"""For the exponent: a line through two points says nothing of its own error."""
ASSUMPTION = (
    "Producers always have full batches ready, loads are spread evenly over leaders and fetchers, and nothing but "
    "these limits holds (not the processor); what the model lacks differs from setting to setting by chance"
)


def fetch_limits(frame: pd.DataFrame) -> pd.DataFrame:
    """
    What each limit allows, in bytes per second of the log, without copies.

    Parameters
    ----------
    frame : DataFrame
        One row per setting or trial. Columns:

        - `rtt_ms`: from producers to leaders; where they differ, the harmonic mean
        - `batch_bytes`, `producers`, `partitions` (all producers write to all of them), `brokers`, `replication`
        - optional, `DEFAULTS` otherwise: `follower_rtt_ms` (from a leader to the slowest of its followers), `acks`,
          `max_in_flight`, `fetchers` (num.replica.fetchers), `fetch_max_bytes` (replica.fetch.max.bytes),
          `fetch_response_max_bytes`, `replica_receive_buffer_bytes` (replica.socket.receive.buffer.bytes),
          `broker_receive_buffer_bytes` (socket.receive.buffer.bytes), `link_rate_bps` (from one broker to another).
          A buffer of -1 is left to the kernel, which is taken as no limit.

    Returns
    -------
    DataFrame
        The frame with all these columns and `by_producers`, `by_acks`, `by_fetch`, `by_buffer`, `by_rate` (infinite
        where a limit does not apply: all but that of producers with acks other than "all", or with a single copy),
        `predicted` (the lowest), and `limit` (which that is).

    Examples
    --------
    One partition over 100 ms: a window of 84 kB per round trip, far below the MiB that a fetch may return.

    >>> one = {"rtt_ms": 100, "batch_bytes": 16_384, "producers": 4, "partitions": 1, "brokers": 3, "replication": 3}
    >>> found = fetch_limits(pd.DataFrame([one | {"batch_bytes": 131_072, "broker_receive_buffer_bytes": -1}]))
    >>> found.limit[0], round(found.predicted[0]), round(found.by_fetch[0]), round(found.by_producers[0])
    ('buffer', 838861, 10485760, 13107200)
    """
    check_columns("frame", frame, NEEDED)
    rows = frame.reset_index(drop=True)
    for name, default in DEFAULTS.items():
        missing = rows.rtt_ms if default is None else default
        rows[name] = rows[name].fillna(missing) if name in rows else missing
    values = {name: rows[name].to_numpy(dtype=float) for name in SETTINGS if name != "acks"}
    for name, column in values.items():
        buffer = name.endswith("buffer_bytes")
        bad = column[~((column > 0) | (buffer & (column == -1)))]
        if len(bad):
            raise refusal(f"column {name}", float(bad[0]), "numbers above 0" + (" or -1" if buffer else ""))
    if (values["replication"] > values["brokers"]).any():
        raise refusal("column replication", rows.replication.max(), "no more copies than brokers")
    waits = (rows.acks.astype(str).isin(["all", "-1"]) & (values["replication"] > 1)).to_numpy()
    for name, limit in (_by_producers(values, waits) | _by_replication(values)).items():
        rows[f"by_{name}"] = limit if name == "producers" else np.where(waits, limit, inf)
    allowed = rows[COLUMNS].to_numpy(dtype=float)
    rows["predicted"] = allowed.min(axis=1)
    rows["limit"] = np.array(NAMES)[allowed.argmin(axis=1)]
    return rows


def _by_producers(values: dict[str, np.ndarray], waits: np.ndarray) -> dict[str, np.ndarray]:
    """What all producers send to all leaders, by their requests in flight, and by acknowledgements in turn."""
    leaders = np.minimum(values["partitions"], values["brokers"])
    allowed = produced_bytes_per_s(
        request_bytes(values["batch_bytes"], values["partitions"] / leaders),
        values["max_in_flight"],
        values["rtt_ms"] / 1000,
        np.where(waits, values["follower_rtt_ms"] / 1000, 0.0),
        connection_window_bytes(values["broker_receive_buffer_bytes"]),
    )
    connections = values["producers"] * leaders
    return {
        "producers": connections * np.minimum(allowed["requests"], allowed["window"]),
        "acks": connections * allowed["in turn"],
    }


def _by_replication(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    What one leader's connections to one follower allow, for the whole cluster.

    Of a leader's partitions each follower copies the share (replication - 1)/(brokers - 1), so of the cluster's
    throughput that share over the leaders passes between two brokers.
    """
    leaders = np.minimum(values["partitions"], values["brokers"])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (values["replication"] - 1) / np.maximum(values["brokers"] - 1, 1)
        allowed = fetched_bytes_per_s(
            np.maximum(share * values["partitions"] / leaders, 1.0),
            values["fetchers"],
            values["follower_rtt_ms"] / 1000,
            connection_window_bytes(values["replica_receive_buffer_bytes"]),
            values["fetch_max_bytes"],
            values["fetch_response_max_bytes"],
        )
        between = {
            "fetch": allowed["fetch"],
            "buffer": allowed["window"],
            "rate": values["link_rate_bps"] / BITS,
        }
        return {name: leaders * one / share for name, one in between.items()}


@dataclass(frozen=True, repr=False)
class FetchModel(Result):
    """
    Measured throughput against the limits.

    Attributes
    ----------
    trials : DataFrame
        As `fetch_limits` returns, and `reached`, measured over predicted.
    reached : dict
        Limit to Estimate: `reached` of the settings that it limits, geometric mean.
    exponent : Estimate
        Of the power of `predicted` with which the measured throughput grows over settings: 1 if the model has the right
        shape, whatever the level. NaN for fewer than three settings.
    """

    trials: pd.DataFrame
    left_out: pd.DataFrame
    reached: dict[str, Estimate]
    exponent: Estimate
    measured: str
    level: float

    TITLE = "Means over the trials of each setting"
    DRAWN_BY = "fetch_model_figure.fetch_model"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Measured over predicted per limit, then the exponent."""
        return (*self.reached.values(), self.exponent)

    @property
    def sentence(self) -> str:
        """The share of each limit that is reached, and whether the shape is that of the model."""
        one = self.exponent
        if not isfinite(one.low):
            shape = ""
        elif one.low <= 1 <= one.high:
            shape = "The shape is that of the model: no other exponent than 1 is shown."
        else:
            shape = "The shape is not that of the model, whose exponent is 1."
        return " ".join([*(estimate.sentence for estimate in self.estimates), shape]).strip()

    @property
    def cautions(self) -> tuple[str, ...]:
        """Rows left out, trials beyond a limit, and those of the estimates."""
        notes = []
        if len(self.left_out):
            n = len(self.left_out) + len(self.trials)
            notes.append(f"{len(self.left_out)} of {count(n, 'trial')} not in use: {reasons(self.left_out)}")
        beyond = int((self.trials.reached > 1).sum())
        if beyond:
            notes.append(
                f"{count(beyond, 'trial')} reached more than the limits allow: a setting or an RTT is not what the "
                "table states, or loads are not spread evenly"
            )
        return (*notes, *super().cautions)

    def table(self) -> pd.DataFrame:
        """One row per setting: trials, RTT, what each limit allows, what was measured, and their ratio."""
        groups = self.trials.groupby(["setting_number", "limit"], sort=False)
        means = groups[["rtt_ms", "batch_bytes", "producers", "partitions", *COLUMNS, "predicted"]].mean()
        means[self.measured] = groups[self.measured].mean()
        means["reached"] = groups.reached.apply(lambda values: np.exp(np.log(values).mean()))
        means.insert(0, "n_trials", groups.size())
        return means.reset_index().drop(columns="setting_number")

    def shown(self) -> pd.DataFrame:
        """The rows of `table`."""
        return text_table(self.table())


def compare_fetch_model(
    frame: pd.DataFrame, measured: str = "bytes_per_s", *, level: float = 0.95
) -> FetchModel:
    """
    Measured throughput against what the limits allow.

    Parameters
    ----------
    frame : DataFrame
        One row per trial, with the columns of `fetch_limits`.
    measured : str
        Its column of bytes per second of the log, without copies.
    level : float
        Confidence level. The unit is the setting, as what the model lacks is common to a setting's trials.
    """
    level = check_level(level)
    check_columns("frame", frame, [measured, *NEEDED])
    rows, left_out = split_rows(frame, measured, NEEDED)
    rows = fetch_limits(rows)
    rows["reached"] = rows[measured] / rows.predicted
    rows["setting_number"] = rows.groupby(SETTINGS, sort=False, dropna=False).ngroup()
    reached = {
        name: _reached(rows[rows.limit == name], name, level) for name in NAMES if (rows.limit == name).any()
    }
    return FetchModel(rows, left_out, reached, _exponent(rows, measured, level), measured, level)


def _basis(rows: pd.DataFrame) -> str:
    return f"{count(len(rows), 'trial')} at {count(rows.setting_number.nunique(), 'setting')}"


def _reached(rows: pd.DataFrame, name: str, level: float) -> Estimate:
    logs = np.log(rows.reached).groupby(rows.setting_number).mean()
    half = half_width(logs, level)
    limit = LIMITS[name]
    return ratio_estimate(
        float(logs.mean()),
        half,
        quantity=f"measured over predicted, {name}",
        claim=f"Where the {limit}, measured is {{}} what is allowed",
        n=len(rows),
        basis=_basis(rows),
        method="t on log ratios, with the setting as the unit",
        assumption=ASSUMPTION,
        level=level,
        warnings=() if isfinite(half) else (f"no interval where the {limit}: a single setting",),
    )


def _exponent(rows: pd.DataFrame, measured: str, level: float) -> Estimate:
    means = np.log(rows[["predicted", measured]]).groupby(rows.setting_number).mean()
    value, half = nan, nan
    if len(means) >= MIN_SETTINGS and means.predicted.nunique() > 1:
        line = stats.linregress(means.predicted, means[measured])
        value, half = line.slope, stats.t.ppf((1 + level) / 2, len(means) - 2) * line.stderr
    return Estimate(
        quantity="exponent of measured over predicted",
        claim="Over settings, the measured throughput grows as the power {} of the predicted one",
        estimate=float(value),
        low=float(value - half),
        high=float(value + half),
        unit="",
        n=len(rows),
        basis=_basis(rows),
        method="least squares of logarithms, with the setting as the unit",
        assumption=ASSUMPTION,
        level=level,
        warnings=() if isfinite(half) else (f"no exponent from {number(len(means))} settings",),
    )
