"""Restart, slow and resize brokers, change their links and the partitions that they lead, and undo these changes."""

import json
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wanbench.errors import CommandError, LabError
from wanbench.measure.kafka import leadership
from wanbench.measure.kafka.cluster import Cluster
from wanbench.measure.kafka.placement import Broker, BrokerSize, sizes_by_broker
from wanbench.measure.kafka.programs import process_limit
from wanbench.measure.labs.base import Host
from wanbench.measure.labs.programs import program_command

from .base import ExperimentError, cluster_of, ended_with, links_of
from .broker_action import BrokerAction

_START_S = 30.0
_END_S = 30.0  # timeouts for a program to start and to end, on a busy machine
_TOOL_S = 60.0
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


class Slowness:
    """
    Slow a broker, by running `wanbench.measure.kafka.programs.process_limit` on its host, until `end` is called.

    `limit` are the program's options that say how much. `about` is its report: the method ("by"), the limit and, once a
    limit of the disk has ended, what was written. Raise ExperimentError if the broker cannot be slowed.
    """

    def __init__(self, cluster: Cluster, node_id: int, *limit: str):
        self.cluster, self.node_id = cluster, node_id
        [self._host] = [node.host for node in cluster.placements if node.node_id == node_id]
        self._stop_file = f"{self._host.scratch}/slow-{uuid.uuid4().hex[:8]}.stop"
        command = program_command(self._host, Path(process_limit.__file__))
        command += ["--pid-file", cluster.pid_file(node_id), "--stop-file", self._stop_file, *limit]
        self._process = self._host.start(command)
        try:
            self._process.wait_for_output("\n", _START_S)
            self.about = json.loads(self._process.printed().splitlines()[0])
        except BaseException as error:
            self._process.stop()
            self._thaw()
            if isinstance(error, CommandError):
                raise ExperimentError(f"broker {node_id} cannot be slowed: {error}") from None
            raise

    @property
    def by_cycles(self) -> bool:
        """Return whether the process is slowed by duty cycles of SIGSTOP and SIGCONT."""
        return self.about["by"] == process_limit.CYCLES

    def end(self) -> None:
        """Restore the broker's full speed; raise ExperimentError if it may still be slow."""
        try:
            self._host.run(["touch", self._stop_file], timeout_s=_END_S)
            done = self._process.wait(_END_S)
        except CommandError as error:
            self._process.stop()
            raise ExperimentError(f"broker {self.node_id} may still be slow: {error}") from error
        finally:
            self._thaw()
        if done.returncode:
            raise ExperimentError(ended_with(f"the program that slowed broker {self.node_id}", done))
        self.about |= json.loads(done.stdout.splitlines()[-1])

    def _thaw(self) -> None:
        if self.cluster.runs(self.node_id):
            self.cluster.thaw(self.node_id)


STARTED = b"Transition from STARTING to STARTED"
"""A broker logs this once it has caught up with the metadata, is unfenced, and answers requests."""
LOOK_S = 0.05


class BrokerControl:
    """
    Carry out actions on the brokers of a cluster; `undo` reverts those that have not ended.

    Administrative requests are sent from `host`. A started broker must answer within `patience_s`.
    """

    def __init__(self, cluster: Cluster, host: Host, patience_s: float):
        self.cluster, self.host, self.patience_s = cluster, host, patience_s
        self.slow: dict[int, Slowness] = {}
        self._links: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
        self._down: set[int] = set()
        self._orders: dict[int, leadership.Order] = {}
        self._originals: leadership.Order = {}

    def begin(self, action: BrokerAction, view: leadership.View, row: dict[str, Any]) -> Callable[[], None] | None:
        """
        Begin a `BrokerAction`; `view` has the current topics. Set `in_force_at_s` and `how` in `row`, its table row.

        Return a function that ends the action, or None if the action is already complete.
        """
        return getattr(self, f"_{action.kind}")(action, view, row)

    def undo(self) -> tuple[list[str], list[str]]:
        """Revert actions that have not ended; return sentences on what was reverted and on what failed."""
        undone, faults = [], []
        steps: list[tuple[str, Callable[[], object]]] = []
        steps += [(f"broker {node} at full speed", partial(self._end_slowness, node)) for node in self.slow]
        steps += [(f"links of {region}", partial(self._restore_links, region)) for region in self._links]
        steps += [(f"broker {node_id} started", partial(self._start, node_id)) for node_id in sorted(self._down)]
        if self._originals:
            steps.append(("replicas in their original order", partial(self._lead, self._originals, others=True)))
        for what, do in steps:
            try:
                do()
                undone.append(what)
            except LabError as error:
                faults.append(f"{what}: {error}")
        leadership.drop_partitions(self.cluster.original_order, self._originals)
        self._originals = {}
        return undone, faults

    # Restarts

    def _restart(self, action: BrokerAction, view: leadership.View, row: dict[str, Any]) -> None:
        self._take_down(self.cluster.stop, action.broker, row)
        self._start(action.broker)

    def _kill(self, action: BrokerAction, view: leadership.View, row: dict[str, Any]) -> Callable[[], None]:
        self._take_down(self.cluster.kill, action.broker, row)
        return lambda: self._start(action.broker)

    def _take_down(self, how: Callable[[int], None], node_id: int, row: dict[str, Any]) -> None:
        if node_id in self.slow and self.slow[node_id].by_cycles:
            raise ExperimentError(f"broker {node_id} is slowed by SIGSTOP and cannot be stopped meanwhile")
        if node_id in self._down or not self.cluster.runs(node_id):
            raise ExperimentError(f"broker {node_id} is not running")
        self._down.add(node_id)
        how(node_id)
        row["in_force_at_s"] = time.time()

    def _start(self, node_id: int) -> None:
        """Start a stopped broker, and return once it answers requests."""
        logged = len(self.cluster.log(node_id))
        if not self.cluster.runs(node_id):
            self.cluster.start(node_id, wait=False)
            end_s = time.monotonic() + self.patience_s
            while STARTED not in self.cluster.log(node_id)[logged:]:
                if not self.cluster.runs(node_id):
                    self.cluster.check()
                if time.monotonic() > end_s:
                    raise ExperimentError(f"broker {node_id} did not answer within {self.patience_s:g} s of its start")
                time.sleep(LOOK_S)
        self._down.discard(node_id)

    # Temporary changes

    def _slow(self, action: BrokerAction, view: leadership.View, row: dict[str, Any]) -> Callable[[], None]:
        return self._limit(action, row, "--share", f"{action.share:g}")

    def _disk(self, action: BrokerAction, view: leadership.View, row: dict[str, Any]) -> Callable[[], None]:
        limit = ["--disk", f"{action.disk_bytes_per_s:.0f}", "--folder", self.cluster.log_folder(action.broker)]
        return self._limit(action, row, *limit, "--credit", f"{action.disk_credit_bytes or 0:.0f}")

    def _limit(self, action: BrokerAction, row: dict[str, Any], *limit: str) -> Callable[[], None]:
        if action.broker in self.slow:
            raise ExperimentError(f"broker {action.broker} is already slow")
        self.slow[action.broker] = slowness = Slowness(self.cluster, action.broker, *limit)
        row["in_force_at_s"] = time.time()
        row["how"] = slowness.about  # to which its end adds
        return lambda: self._end_slowness(action.broker)

    def _end_slowness(self, node_id: int) -> None:
        if node_id in self.slow:
            self.slow[node_id].end()
            del self.slow[node_id]

    def _link(self, action: BrokerAction, view: leadership.View, row: dict[str, Any]) -> Callable[[], None]:
        links = links_of(self.host)
        [region] = [broker.host.region for broker in self.cluster.brokers if broker.node_id == action.node_id]
        if region in self._links:
            raise ExperimentError(f"the links of {region} are already changed")
        pairs = [pair for pair in links.links if region in pair]
        self._links[region] = {pair: asdict(links.links[pair]) for pair in pairs}
        for pair in pairs:
            links.set_link(*pair, **action.link_changes)
        row["in_force_at_s"] = time.time()
        row["how"] |= {"region": region, "directions": len(pairs), **action.link_changes}
        return lambda: self._restore_links(region)

    def _restore_links(self, region: str) -> None:
        links = links_of(self.host)
        for pair, settings in self._links.get(region, {}).items():
            links.set_link(*pair, **settings)
        self._links.pop(region, None)

    # Leadership

    def _demote(self, action: BrokerAction, view: leadership.View, row: dict[str, Any]) -> None:
        self._reorder(action.broker, leadership.without_leader(view, action.broker), view, row)
        led = [partition for _, partition in leadership.partitions(view) if partition["leader"] == action.node_id]
        row["how"]["unmovable"] = sum(len(partition["replicas"]) == 1 for partition in led)

    def _skew(self, action: BrokerAction, view: leadership.View, row: dict[str, Any]) -> None:
        self._reorder(action.broker, leadership.all_led_by(view, action.broker), view, row)

    def _rebalance(self, action: BrokerAction, view: leadership.View, row: dict[str, Any]) -> None:
        self._reorder(None, leadership.balanced(view), view, row)

    def _restore(self, action: BrokerAction, view: leadership.View, row: dict[str, Any]) -> None:
        order = (
            deepcopy(self.cluster.original_order) if action.node_id is None else self._orders.pop(action.node_id, {})
        )
        row["how"] |= self._lead(order, others=True)  # a concurrent Detection may have removed it
        # partitions that have their original order again need not be undone
        self._originals = {
            topic: left
            for topic, partitions in self._originals.items()
            if (left := {n: nodes for n, nodes in partitions.items() if order.get(topic, {}).get(n) != nodes})
        }

    def _reassign(self, action: BrokerAction, view: leadership.View, row: dict[str, Any]) -> None:
        own = [topic for topic in view if not topic["name"].startswith("__")]
        nodes = [broker.node_id for broker in self.cluster.brokers if broker.node_id != action.node_id]
        order = leadership.spread(own, nodes)
        leadership.merge(self._originals, leadership.save_order(self.cluster.original_order, view, order))
        row["how"]["unmovable"] = sum(len(topic["partitions"]) for topic in own) - sum(map(len, order.values()))
        each = ((topic, n, replicas) for topic, own in order.items() for n, replicas in own.items())
        rows = [{"topic": topic, "partition": int(n), "replicas": replicas} for topic, n, replicas in each]
        plan = f"{self.host.scratch}/reassignment-{uuid.uuid4().hex[:8]}.json"
        with TemporaryDirectory() as folder:
            (path := Path(folder, "plan.json")).write_text(json.dumps({"version": 1, "partitions": rows}))
            self.host.put(path, plan)
        done, began_s = False, time.monotonic()
        try:
            limit = action.throttle_bytes_per_s
            self._tool(plan, "--execute", *(["--throttle", f"{limit:.0f}"] if limit else []))
            row["in_force_at_s"] = time.time()
            while (now := self.cluster.ask(self.host, "topics")) and leadership.current_order(now, order) != order:
                if time.monotonic() - began_s > self.patience_s:
                    raise ExperimentError(f"the reassignment did not end within {self.patience_s:g} s")
                time.sleep(LOOK_S)
            done = True
            row["how"] |= self._lead(order)
            row["done_at_s"] = time.time()
        finally:
            self._tool(plan, "--verify" if done else "--cancel")  # both remove the throttle

    def _tool(self, plan: str, *arguments: str) -> None:
        """Run Kafka's tool kafka-reassign-partitions with a plan in JSON."""
        given = ["--bootstrap-server", self.cluster.bootstrap, "--reassignment-json-file", plan, *arguments]
        if client_file := self.cluster.client_file(self.host):
            given += ["--command-config", client_file]
        command = self.cluster.java(self.host, REASSIGN, *given, heap_mb=64, jvm=("-XX:TieredStopAtLevel=1",))
        self.host.run(command, timeout_s=_TOOL_S)

    def _reorder(self, node: int | None, order: leadership.Order, view: leadership.View, row: dict[str, Any]) -> None:
        if node is not None:
            self._orders[node] = leadership.current_order(view, order)
        leadership.merge(self._originals, leadership.save_order(self.cluster.original_order, view, order))
        row["how"] |= self._lead(order)

    def _lead(self, order: leadership.Order, *, others: bool = False) -> dict[str, int]:
        if not order:
            return {"ordered": 0, "led": 0, "missing": 0}
        return self.cluster.ask(self.host, "lead", replicas=order, others=others)


@contextmanager
def apply_sizes(source: Host, sizes: BrokerSize | tuple[BrokerSize | None, ...]) -> Generator[None]:
    """
    Limit the brokers to these sizes (processors and network rate) while the `with` block runs.

    A broker that died meanwhile is restarted, so that the next trial finds a complete cluster. If the lab is killed,
    its supervisor deletes the control groups. Raise ExperimentError if the links or the kernel cannot apply a size.
    """
    cluster = cluster_of(source)
    of_all = zip(cluster.brokers, sizes_by_broker(sizes, len(cluster.brokers)), strict=True)
    wanted = [(broker, size) for broker, size in of_all if size is not None]
    with ExitStack() as undoing:
        undoing.callback(_restart_dead, cluster)  # undone last, because a broker starts slowly under a quota
        for broker, size in wanted:
            if size.link_bps is not None:
                _set_links(broker, size, cluster, undoing)
        for broker, size in wanted:
            if size.processors is not None:
                slowness = Slowness(cluster, broker.node_id, "--share", f"{size.processors:g}")
                undoing.callback(slowness.end)
                if slowness.by_cycles and size.processors >= 1:
                    why = "the kernel allows no CPU quota here, and duty cycles can set only less than one processor"
                    limited = f"broker {broker.node_id} cannot be limited to {size.processors:g} processors"
                    raise ExperimentError(f"{limited}: {why}")
        yield


def _set_links(broker: Broker, size: BrokerSize, cluster: Any, undoing: ExitStack) -> None:
    links, region = links_of(broker.host), broker.host.region
    if not hasattr(links, "set_gateway"):
        raise ExperimentError(f"the rate of the links of {broker.host.name} cannot be set")
    if sum(other.host.region == region for other in cluster.brokers) > 1:
        raise ExperimentError(f"link_bps needs a region with one broker; {region} has several")
    undoing.callback(links.set_gateway, region, links.gateways.get(region))
    links.set_gateway(region, size.burst_bps or size.link_bps)
    wanted = {"rate_bps": size.link_bps, "burst_rate_bps": size.burst_bps, "burst_bytes": size.burst_bytes}
    for pair, link in dict(links.links).items():
        if pair[1] == region:
            undoing.callback(links.set_link, *pair, **{name: getattr(link, name) for name in wanted})
            links.set_link(*pair, **wanted)


def _restart_dead(cluster: Any) -> None:
    for broker in cluster.brokers:
        if not cluster.runs(broker.node_id):
            with suppress(LabError):
                cluster.start(broker.node_id)
