"""Describe one action on a broker: restart, slow or demote it, or change its links, disk or partitions."""

from __future__ import annotations

from dataclasses import MISSING, dataclass

from wanbench.checks import check_number, refusal
from wanbench.errors import ParameterError

from .base import bounded, check_declared, one_of

RESTARTS = ("restart", "kill")
PASSING = ("slow", "disk", "link")
LEADERS = ("demote", "restore", "skew", "rebalance", "reassign")
KINDS = (*RESTARTS, *PASSING, *LEADERS)
LASTING = ("kill", *PASSING)  # kinds of actions that last for `for_s`
_LINK = ("delay_ms", "jitter_ms", "loss", "rate_bps")


@dataclass(frozen=True)
class BrokerAction:
    """
    One action on a broker.

    Parameters
    ----------
    kind : str
        "restart": the broker hands over its leadership, stops (controlled shutdown) and is started again at once.
        "kill": its process is killed (SIGKILL), and is started again after `for_s`. "slow": its process gets `share` of
        one processor for `for_s`, by a CPU quota or else by duty cycles of SIGSTOP; table broker_actions records the
        method. "disk": a control group limits its writes to `disk_bytes_per_s` for `for_s`; this needs brokers that
        wait for their writes (their setting log.flush.interval.messages). "link": all links of the broker's region get
        the given `delay_ms`, `jitter_ms`, `loss` or `rate_bps` for `for_s`.

        The next four kinds change all topics, including Kafka's internal ones. "demote": the broker becomes the last
        replica of every partition that it leads or is the preferred leader of, and the first in-sync replica leads. The
        broker remains a follower, and producers with acks "all" still wait for it. "restore": replicas return to the
        order they had before the broker's latest "demote" or "skew". If no broker is given, they return to their
        original order, which also undoes demotions by an experiment that runs at the same time. "skew": the broker
        leads every partition that it replicates. "rebalance": all brokers lead equally many partitions of each topic.

        "reassign" moves data, except that of Kafka's internal topics: Kafka's own tool moves all replicas away from the
        broker or, if none is given, spreads them so that all brokers hold equally many, and lead about equally many. A
        partition with a replica on every broker cannot move.
    node_id : int or None
        The broker; None with "rebalance", with a "restore" of all brokers, with a "reassign" that spreads, and in a
        schedule that is `rolling`.
    at_s : float
        Time of the action, in s after the load starts to send or, in a rolling schedule, after the broker's turn
        begins.
    delay_ms, jitter_ms, loss, rate_bps : float or None
        New settings of the links, one way. None leaves a setting unchanged.
    throttle_bytes_per_s : float or None
        With "reassign", the rate at which a broker sends and receives moved data at most. A throttle below the rate at
        which records arrive for the moved replicas never ends.
    disk_bytes_per_s : float or None
        With "disk", how much the broker may write.
    disk_credit_bytes : float or None
        With "disk", what the broker may write at full speed before that (burst credit).

    Examples
    --------
    >>> print(BrokerAction("slow", 2, at_s=10, for_s=20, share=0.1))
    slow broker 2 to 0.1 processors at 10 s for 20 s
    """

    kind: str = one_of(MISSING, KINDS)
    node_id: int | None = None
    at_s: float = bounded(0.0, 0, 86_400)
    for_s: float = bounded(10.0, 0.1, 86_400)
    share: float = bounded(0.2, 0.01, 0.99)
    delay_ms: float | None = bounded(None, 0, 60_000)
    jitter_ms: float | None = bounded(None, 0, 60_000)
    loss: float | None = bounded(None, 0, 1)
    rate_bps: float | None = bounded(None, 1000, 1e12)
    throttle_bytes_per_s: float | None = bounded(None, 1, 1e12)
    disk_bytes_per_s: float | None = bounded(None, 1e4, 1e12)  # slower, a killed broker would not end soon
    disk_credit_bytes: float | None = bounded(None, 1, 1e15)

    def __post_init__(self):
        check_number("BrokerAction node_id", self.node_id, 1, 1_000_000, whole=True, optional=True)
        check_declared(self)
        given = ", ".join(self.link_changes)
        if given and self.kind != "link":
            raise ParameterError(f"BrokerAction {self.kind!r} has {given}; allowed: with the kind 'link' only.")
        if self.kind == "link" and not given:
            raise ParameterError(f"BrokerAction 'link' changes nothing; allowed: at least one of {', '.join(_LINK)}.")
        if self.throttle_bytes_per_s is not None and self.kind != "reassign":
            raise refusal("BrokerAction throttle_bytes_per_s", self.throttle_bytes_per_s, "with 'reassign' only")
        if (self.disk_bytes_per_s is None) == (self.kind == "disk"):
            raise refusal("BrokerAction disk_bytes_per_s", self.disk_bytes_per_s, "a rate with 'disk', None without")
        if self.disk_credit_bytes is not None and self.kind != "disk":
            raise refusal("BrokerAction disk_credit_bytes", self.disk_credit_bytes, "with 'disk' only")
        if self.kind == "rebalance" and self.node_id is not None:
            raise refusal("BrokerAction node_id", self.node_id, "None with the kind 'rebalance'")

    @property
    def broker(self) -> int:
        """Return `node_id`; raise ParameterError if the action names no broker."""
        if self.node_id is None:
            raise ParameterError(f"“{self}” names no broker; allowed: with node_id only.")
        return self.node_id

    @property
    def link_changes(self) -> dict[str, float]:
        """Return the link settings that a "link" action changes."""
        return {name: value for name in _LINK if (value := getattr(self, name)) is not None}

    def __str__(self) -> str:
        whom = "" if self.node_id is None else f" broker {self.node_id}"
        how = f" to {self.share:g} processors" if self.kind == "slow" else ""
        how += f" to {self.disk_bytes_per_s:g} bytes/s" if self.disk_bytes_per_s else ""
        how += f" after {self.disk_credit_bytes:g} bytes" if self.disk_credit_bytes else ""
        how += "".join(f" {name} {value:g}" for name, value in self.link_changes.items())
        how += f" at {self.throttle_bytes_per_s:g} bytes/s" if self.throttle_bytes_per_s else ""
        lasts = f" for {self.for_s:g} s" if self.kind in LASTING else ""
        return f"{self.kind}{whom}{how} at {self.at_s:g} s{lasts}"
