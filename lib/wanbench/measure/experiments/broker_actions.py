"""Restart, slow and demote brokers on a schedule during a load. Read by `wanbench.read.ingest.broker_actions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wanbench.checks import refusal
from wanbench.errors import ParameterError

from .base import bounded, check_declared
from .broker_action import LASTING, LEADERS, RESTARTS, BrokerAction
from .broker_actions_session import ActionsSession
from .concurrent_session import Concurrent

_RESTART_S, _LEADERS_S = 12.0, 2.0  # expected durations, measured on two busy processors


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
