"""Restart, slow and demote brokers on a schedule during a load. Read by `wanbench.read.ingest.broker_actions`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import ClassVar

from wanbench.checks import check_number, refusal
from wanbench.errors import ParameterError

from .base import bounded, check_declared, one_of
from .broker_actions_session import ActionsSession
from .concurrent_session import Concurrent

RESTARTS = ("restart", "kill")
PASSING = ("slow", "disk", "link")
LEADERS = ("demote", "restore", "skew", "rebalance", "reassign")
KINDS = (*RESTARTS, *PASSING, *LEADERS)
LASTING = ("kill", *PASSING)  # kinds of actions that last for `for_s`
_LINK = ("delay_ms", "jitter_ms", "loss", "rate_bps")
_RESTART_S, _LEADERS_S = 12.0, 2.0  # expected durations, measured on two busy processors


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


@dataclass(frozen=True)
class BrokerActions(Concurrent):
    """
    A schedule of actions on the brokers of a cluster during a load, while the cluster is watched.

    It leaves broker_actions/<stem>.actions.json, which names <stem>.watch-0.jsonl.gz. In `KafkaTrial.alongside`, where
    a schedule belongs, its times count from the moment when the load begins to send.

    Actions begin in the order of their times. An unfinished action delays the next one, except that "slow", "disk",
    "link" and the downtime of a "kill" overlap with other actions. When the load ends, actions that last for `for_s`
    are cut short and later actions are skipped; table broker_actions records which. At the end everything is always
    restored, and the JSON file lists what had to be undone.

    A broker slowed by duty cycles cannot be restarted or killed; the row of such an action has an error.

    Parameters
    ----------
    rolling : bool
        Each broker has a turn, in the order of node ids. A turn runs all `actions`, which have no node_id, one after
        the other. After each action the schedule waits until all brokers are present and no partition of any topic is
        under-replicated.
    patience_s : float
        Timeout of waiting until the cluster is healthy after an action, and until a started broker answers. If it
        expires, the action's row in table broker_actions has an error.
    pause_s : float
        Pause between two turns.
    watch_interval_s : float
        Interval between samples of leaders and in-sync replicas; it is also the resolution of `healthy_at_s`.
    duration_s : float
        Duration of `run`, which watches and acts without a load.

    Examples
    --------
    >>> print(BrokerActions((BrokerAction("demote"), BrokerAction("restart"), BrokerAction("restore")), rolling=True))
    every broker in turn: demote at 0 s, restart at 0 s, restore at 0 s
    """

    actions: tuple[BrokerAction, ...]
    rolling: bool = False
    patience_s: float = bounded(90.0, 1, 3600)
    pause_s: float = bounded(2.0, 0, 3600)
    watch_interval_s: float = bounded(0.5, 0.25, 60)
    duration_s: float = bounded(60.0, 1, 86_400)

    name: ClassVar[str] = "broker_actions"
    session: ClassVar = ActionsSession

    def __post_init__(self):
        if isinstance(self.actions, BrokerAction):
            object.__setattr__(self, "actions", (self.actions,))
        given = self.actions if isinstance(self.actions, list | tuple) else ()
        # manifests contain actions as mappings
        actions = tuple(BrokerAction(**action) if isinstance(action, dict) else action for action in given)
        if not actions or not all(isinstance(action, BrokerAction) for action in actions):
            raise refusal("BrokerActions actions", self.actions, "at least one BrokerAction")
        object.__setattr__(self, "actions", actions)
        check_declared(self)
        for action in actions:
            if self.rolling and (action.node_id is not None or action.kind in ("rebalance", "reassign")):
                allowed = "actions on one broker, without node_id"
                raise ParameterError(f"BrokerActions rolling has “{action}”; allowed: {allowed}.")
            if not self.rolling and action.node_id is None and action.kind not in ("restore", "rebalance", "reassign"):
                raise ParameterError(f"BrokerActions has “{action}” without node_id; allowed: with rolling only.")

    def __str__(self) -> str:
        return ("every broker in turn: " if self.rolling else "") + ", ".join(map(str, self.actions))

    def expected_s(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """
        Return the expected time in s until all actions have ended; a rolling schedule is assumed to have three turns.
        """
        if self.rolling:
            return 3 * (sum(map(self._lasts_s, self.actions)) + self.pause_s)
        return max(action.at_s + self._lasts_s(action) for action in self.actions)

    def _lasts_s(self, action: BrokerAction) -> float:
        lasts_s = action.for_s if action.kind in LASTING else 0.0
        return lasts_s + (_RESTART_S if action.kind in RESTARTS else _LEADERS_S if action.kind in LEADERS else 0.0)

    def expected_bytes(self, rtt_ms: float, rate_bps: float | None = None) -> float:
        """Return 0: the source sends a negligible number of bytes."""
        return 0.0
