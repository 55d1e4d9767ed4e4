"""What the hosts of a lab cost, before and while they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from wanbench.errors import LabError
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.spending import Estimate
from wanbench.measure.plan import cost as costing

from .resources import everywhere, tell

HOURS_PER_MONTH = 730


class Costs:
    """
    Costs of equal hosts in some regions of one cloud (names of the catalogue). `per_host_hour` is what an
    hour of a host uses in addition to its instance type; by default a public address, and its volume.

    `prices` is the table of prices: `overrides` replace `listed` (the cloud's own list), which replace the
    dated tables. `notes` are shown to whoever is asked to agree.
    """

    def __init__(
        self,
        regions: Sequence[str],
        *,
        instance_type: str,
        hosts_per_region: int,
        volume_gb: int | None = None,
        overrides: Mapping[str, float],
        listed: Mapping[str, tuple[float, float]] | None = None,
        notes: Sequence[str] = (),
        per_host_hour: Mapping[str, float] | None = None,
    ):
        cloud = regions[0].partition(":")[0]
        self.notes = list(notes)
        self.prices = costing.prices({cloud: {**(listed or {}), **overrides}})
        self._n_hosts = hosts_per_region * len(regions)
        self._of = {
            "regions": list(regions),
            "instance_types": {cloud: instance_type},
            "price_list": self.prices,
            "hosts_per_region": hosts_per_region,
            "per_host_hour": per_host_hour
            or {"public address": 1.0, **({"volume": volume_gb / HOURS_PER_MONTH} if volume_gb else {})},
        }

    def of(
        self, sent_bytes: Mapping[tuple[str, str], float] | None, measuring_s: float, *, set_up_s: float = 0.0
    ) -> Estimate:
        """The cost of so much traffic and time; see `wanbench.measure.plan.cost.cost`."""
        table = costing.cost(sent_bytes=sent_bytes, measuring_s=measuring_s, set_up_s=set_up_s, **self._of)
        return Estimate(table, self._n_hosts, (measuring_s + set_up_s) / 3600)


class Meter:
    """What hosts have sent, and for how long they have run, since it was made."""

    def __init__(self):
        # By the wall clock: a monotonic one stands still while this machine sleeps, and hosts do not.
        self._started, self._ended, self._sent = datetime.now(UTC), None, {}

    def stop(self) -> None:
        """The hosts are gone: neither time nor bytes are counted any more."""
        self._ended = datetime.now(UTC)

    def running_s(self) -> float:
        """Time in s from when it was made until now, or until it was stopped."""
        return max(0.0, ((self._ended or datetime.now(UTC)) - self._started).total_seconds())

    def sent(self, hosts: Sequence[Host], target: str) -> dict[tuple[str, str], float]:
        """Bytes by (region, target). A silent host counts with its last answer, and a message says so."""
        if self._ended is None:
            everywhere(self._count, hosts)
        by_region: dict[tuple[str, str], float] = {}
        for region, sent in self._sent.values():
            by_region[region, target] = by_region.get((region, target), 0.0) + sent
        return by_region

    def _count(self, host: Host) -> None:
        try:
            self._sent[host.name] = (host.region, bytes_sent(host))
        except LabError as error:
            told = "what it sent since it was last asked is not counted"
            tell(f"wanbench: the costs are too low, as {told}: {error}")


def bytes_sent(host: Host) -> float:
    """Bytes that all interfaces of a host but the loopback have sent."""
    lines = host.run(["cat", "/proc/net/dev"], timeout_s=30).stdout.decode().splitlines()[2:]
    parts = (line.partition(":") for line in lines)
    return float(sum(int(rest.split()[8]) for name, _, rest in parts if name.strip() != "lo"))
