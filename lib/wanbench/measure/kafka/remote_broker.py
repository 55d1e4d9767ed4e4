"""A machine that clients reach over the network, but on which this library runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wanbench.measure.labs.base import Completed, Host, Process

from .errors import ClusterError


class RemoteBrokerHost(Host):
    """
    The host of a broker that this library did not start; its region is the broker's rack. Commands raise ClusterError.
    """

    def __init__(self, node_id: int, rack: str | None, address: str):
        self.name, self.region, self.address = f"broker {node_id}", rack or "", address

    @property
    def scratch(self) -> str:
        raise self._refusal()

    def run(self, command: Sequence[str], *, timeout_s: float, ok: Sequence[int] | None = (0,)) -> Completed:
        raise self._refusal()

    def start(self, command: Sequence[str]) -> Process:
        raise self._refusal()

    def put(self, source: Path, target: str) -> None:
        raise self._refusal()

    def get(self, source: str, target: Path) -> None:
        raise self._refusal()

    def _refusal(self):
        return ClusterError(f"{self.name} runs elsewhere: no command can be run there and no file fetched.")

    def __repr__(self):
        return f"<remote {self.name}>"
