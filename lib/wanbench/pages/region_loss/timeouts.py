"""
Compute from timeouts and round trips how long an outage must last if a region is lost; compare with measured outages.

The symbols, with the names of settings in Kafka. Brokers: S broker.session.timeout.ms, H broker.heartbeat.interval.ms,
L replica.lag.time.max.ms, Q controller.quorum.fetch.timeout.ms, E controller.quorum.election.timeout.ms, B
controller.quorum.election.backoff.max.ms. Clients (librdkafka): T the smaller of socket.timeout.ms and
message.timeout.ms, F fetch.wait.max.ms, C session.timeout.ms, K heartbeat.interval.ms, R retry.backoff.max.ms. r is the
largest RTT.

Detection
    The controller fences a broker when S has passed since its last heartbeat (KIP-631). The last heartbeat was sent up
    to H + r before the fault, so S ends between S - H - r and S after the fault. As the controller checks only every
    S/8, it may fence the broker as late as 9/8 S after the fault.
Controller in the region that is lost
    Voters notice the loss when a fetch has not been answered for Q, of which up to r may have passed before the fault.
    Then they vote, which takes one round trip or, if votes are split, up to 2 E (drawn from E to 2 E) and B more. The
    new controller starts every broker's session again.
Acknowledgements with acks=all
    A leader answers once every in-sync replica has the record. A replica in the lost region leaves the in-sync set when
    its broker is fenced, or when it has lagged for L, whichever comes first. It may have lagged for
    replica.fetch.wait.max.ms and r before the fault, the leader checks every L/2, and the controller must confirm the
    change. Until then no partition with a replica in the lost region can be written, wherever its leader is; if every
    partition has a replica in every region, none can. With acks=1, leaders elsewhere answer at once.
Election
    The controller commits the new leaders to a majority, and brokers fetch them: one to three round trips.
Partitions led in the lost region
    A cut leaves connections open. librdkafka gives up a request to the lost leader after T, and checks for
    such requests once a second (`SCAN_S`). (Its request.timeout.ms, unlike the Java client's, is enforced by
    the broker.) Then the producer asks for the leader and sends again, after R and up to a fifth more.
    Records not in flight may go to the new leader sooner. Upper bound: the later of election and T + 1 s,
    then 1.2 R and three round trips.
Reads
    A partition that cannot be written has nothing to read. The coordinator removes a silent member from the group when
    C has passed since its last heartbeat, which is C - K to C after the fault. Members with the classic protocol learn
    of it with their next heartbeat, up to K later, and rejoin in two round trips. If the coordinator was lost too, its
    successor starts C again. A fetch from the lost leader is given up after T + F + 1 s.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from wanbench.checks import check_choice, check_number
from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Fields, RowsResult

from .episodes import Episode, Episodes
from .recovery import Recovery

DEFAULTS_MS = {
    "broker.session.timeout.ms": 9_000,
    "broker.heartbeat.interval.ms": 2_000,
    "controller.quorum.fetch.timeout.ms": 2_000,
    "controller.quorum.election.timeout.ms": 1_000,
    "controller.quorum.election.backoff.max.ms": 1_000,
    "replica.lag.time.max.ms": 30_000,
    "replica.fetch.wait.max.ms": 500,
    "socket.timeout.ms": 60_000,
    "message.timeout.ms": 300_000,
    "fetch.wait.max.ms": 500,
    "session.timeout.ms": 45_000,
    "heartbeat.interval.ms": 3_000,
    "retry.backoff.max.ms": 1_000,
    "group.consumer.session.timeout.ms": 45_000,
    "group.consumer.heartbeat.interval.ms": 5_000,
}
"""Defaults of Kafka 4.1's brokers and of librdkafka's clients."""
SCAN_S = 1.0
"""Interval at which librdkafka checks for timed-out requests (`rd_kafka_broker_timeout_scan`, version 2)."""
RETRY_JITTER = 1.2
"""Largest factor by which librdkafka lengthens the backoff of a retry."""
QUANTITIES = {
    "writes": ("all writes", "writes"),
    "partition": ("worst partition", "writes_partition"),
    "reads": ("worst partition's reads", "reads_partition"),
}
"""
Maps each quantity for which `implied` has bounds to its title, and to the quantity of `Recovery` that measures it.
"""
PLACES = {True: "in the affected region", False: "elsewhere", None: "not known"}
"""Where the active controller was. If this is unknown, the bounds cover both cases."""


def implied(
    settings: Fields, rtt_ms: float, acks: str = "all", controller_lost: bool = False, group_protocol: str = "classic"
) -> dict[str, tuple[float, float]]:
    """
    Compute lower and upper bounds, in seconds, of the outage after a whole region is lost at once.

    Returns (low, high) of the time to detect the loss ("detection"), and of the outages of all writes ("writes"), of
    writes to the worst partition ("partition") and of reads of the worst partition ("reads"). `settings` maps names of
    Kafka's broker and client settings to milliseconds; the others are as in `DEFAULTS_MS`. `rtt_ms` is the longest RTT
    between regions, and `controller_lost` says whether the active controller is in the lost region.

    >>> ends = implied({"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}, 70)
    >>> [round(end, 2) for end in ends["detection"]]
    [2.43, 3.38]
    """
    check_choice("acks", acks, ("0", "1", "all"))
    check_choice("group_protocol", group_protocol, ("classic", "consumer"))
    r = check_number("rtt_ms", rtt_ms, 0) / 1000
    known = {name: _seconds(name, settings.get(name, default)) for name, default in DEFAULTS_MS.items()}
    session, heartbeat = known["broker.session.timeout.ms"], known["broker.heartbeat.interval.ms"]
    low, high = max(session - heartbeat - r, 0), session * 9 / 8
    lag, wait = known["replica.lag.time.max.ms"], known["replica.fetch.wait.max.ms"]
    out_of_sync = max(lag - wait - r, 0), 1.5 * lag
    if controller_lost:
        fetch, vote = (known["controller.quorum.fetch.timeout.ms"], known["controller.quorum.election.timeout.ms"])
        voted = max(fetch - r, 0) + r, fetch + 2 * vote + known["controller.quorum.election.backoff.max.ms"]
        low, high = voted[0] + session, voted[1] + session * 9 / 8
        out_of_sync = max(out_of_sync[0], voted[0]), max(out_of_sync[1], voted[1])
    elected = low + r, high + 3 * r
    agreed = out_of_sync[0] + r, out_of_sync[1] + 3 * r
    writes = (min(elected[0], agreed[0]), min(elected[1], agreed[1])) if acks == "all" else (0.0, 2 * r)
    given_up = min(known["socket.timeout.ms"], known["message.timeout.ms"]) + SCAN_S
    again = RETRY_JITTER * known["retry.backoff.max.ms"] + 3 * r
    partition = elected[0], max(elected[1], given_up) + again
    prefix = "group.consumer." if group_protocol == "consumer" else ""
    silent, beat = known[f"{prefix}session.timeout.ms"], known[f"{prefix}heartbeat.interval.ms"]
    fetch_s = known["socket.timeout.ms"] + known["fetch.wait.max.ms"] + SCAN_S
    last = max(elected[1] + silent + beat, fetch_s) + 3 * r
    reads = min(writes[0], max(silent - beat, 0.0)), max(last, partition[1])
    return {"detection": (low, high), "writes": writes, "partition": partition, "reads": reads}


def _seconds(name: str, value: Any) -> float:
    try:
        return check_number(name, float(value), 0) / 1000
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is {value!r}; allowed: milliseconds.") from None


@dataclass(frozen=True, repr=False)
class Planned(RowsResult):
    """
    Bounds of outages and measured outages: one row per setting, place of the active controller, and quantity.

    Columns: low_s and high_s (the bounds); n (measured outages, one per episode), min_s and max_s (the shortest and the
    longest); inside and longer (how many lie within the bounds, and above); healed (how many further outages ended only
    with healing and so cannot be compared).
    """

    TITLE = "Outages that settings imply, and measured outages"

    @property
    def sentence(self) -> str:
        n, inside, longer, healed = (int(self.rows[name].sum()) for name in ("n", "inside", "longer", "healed"))
        uncompared = (
            f" {count(healed, 'more outage')} ended only with healing and cannot be compared with these bounds."
        )
        left_out = uncompared if healed else ""
        return (
            f"Of {count(n, 'measured outage')}, {inside} lie within the bounds that timeouts and round trips "
            f"imply, and {longer} lasted longer.{left_out}"
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        return ("an episode has up to three outages; they are not independent, because they share a fault",)

    def formatted_table(self) -> pd.DataFrame:
        rows = self.rows
        cells = {"setting": rows.setting, "controller": rows.controller, "outage of": rows.quantity}
        cells |= {"implied": [*map(_span, rows.low_s, rows.high_s)]}
        cells |= {"measured": [*map(_span, rows.min_s, rows.max_s)]}
        cells["inside"] = [f"{inside} of {n}" for inside, n in zip(rows.inside, rows.n, strict=True)]
        return pd.DataFrame(cells | {"longer": rows.longer.astype(str), "ended by healing": rows.healed.astype(str)})


def planned(
    episodes: Episodes, recovered: Recovery, *, rtt_ms: float, cluster_settings: Mapping[str, object] | None = None
) -> Planned:
    """
    Compare measured outages with the bounds of `implied`, for faults that remove one whole region ("cut", "kill" or
    "freeze").

    `rtt_ms` is the longest RTT between regions; `cluster_settings` are settings of the brokers that the episodes do not
    record. Raises ParameterError: no episode has such a fault.
    """
    rows, measured = [], recovered.rows.set_index(KEY)
    for name, own in episodes.with_fault().by_setting().items():
        about = own[0].about
        if about.fault not in ("cut", "kill", "freeze") or len(own[0].affected) > 1:
            continue
        given = dict(cluster_settings or {}) | _json(about.broker_settings) | _json(about.client_settings)
        if pd.notna(about.get("session_timeout_ms")):
            given.setdefault("session.timeout.ms", about.session_timeout_ms)
        about_all = {"acks": about.acks, "group_protocol": about.group_protocol or "classic"}
        ends = [implied(given, rtt_ms, **about_all, controller_lost=lost) for lost in (False, True)]
        for place, title in PLACES.items():
            keys = [tuple(each.key.values()) for each in own if controller_lost(each) is place]
            for quantity, (what, column) in QUANTITIES.items() if keys else ():
                low, high = ends[place is True][quantity][0], ends[place is not False][quantity][1]
                part = measured.loc[keys]
                healed = part[f"{column}_censored"].astype("boolean").fillna(False)
                times = part[column][~healed].dropna()
                row = {"setting": name, "controller": title, "quantity": what, "low_s": low, "high_s": high}
                row |= {"n": len(times), "min_s": times.min(), "max_s": times.max()}
                row |= {"inside": int(times.between(low, high).sum()), "longer": int((times > high).sum())}
                rows.append(row | {"healed": int(healed.sum())})
    if not rows:
        raise ParameterError("no episode removes a whole region at once, so settings imply no outage.")
    return Planned(pd.DataFrame(rows))


def controller_lost(episode: Episode) -> bool | None:
    """
    Return whether the active controller was in the affected region; None if this is not known.

    It was there if the fault targeted the controller, or if a node outside that region became controller during the
    fault. It was elsewhere if a node outside fenced brokers and no other controller was elected.
    """
    events = episode.events
    if episode.about["at"] == "controller" or ((events.kind == "elected") & events.partition.isna()).any():
        return True
    return False if (events.kind == "fenced").any() else None


def _span(low: float, high: float) -> str:
    return "none" if pd.isna(low) else f"{low:.1f} s" if low == high else f"{low:.1f} to {high:.1f} s"


def _json(text: object) -> Fields:
    return json.loads(text) if isinstance(text, str) and text else {}
