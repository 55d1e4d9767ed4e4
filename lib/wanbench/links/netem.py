"""
Links made by the kernel's netem, behind the same face as `relay.Relay`. Imported by `keeper`.

Star-shaped: each region's device is one end of a veth pair whose other end is in a hub, a namespace that does
nothing but forward. What the commands are and why: `tc`.

What differs from the relay. The jitter is even (not normal) and drawn anew for each packet, so
`jitter_correlation_s` has no effect, and packets that are close together share the longest delay among them.
The random numbers are the kernel's: a seed has no effect. `tc` counts the packets that it drops, not their
bytes, so those are None. Nothing says how late packets were. A TTL is one less at the other end.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable

from wanbench.errors import LabError
from wanbench.links import namespaces, tc

HUB_ADDRESS = "169.254.0.1"
"""The hub as the regions' next hop. No device has it: the neighbours on either side are set, not asked for."""


class Netem:
    """All links of a lab between veth devices. The words for delay, jitter and loss can be replaced."""

    def __init__(self, travel: Callable[[float, float, float], str] = tc.netem):
        self._travel = travel
        self._hub = namespaces.make_namespace()
        namespaces.set_sysctls(
            {
                "net.ipv4.ip_forward": "1",
                "net.ipv4.conf.all.rp_filter": "0",
                "net.ipv4.conf.default.rp_filter": "0",
                "net.ipv4.conf.all.send_redirects": "0",
                "net.ipv4.conf.default.send_redirects": "0",
            }
        )
        namespaces.run_batch("ip", ["link set lo up"])
        self._regions: dict[int, int] = {}
        self._pairs: list[tuple[int, int]] = []
        self._leaf: dict[tuple[int, int], str] = {}
        self._is_cut: set[tuple[int, int]] = set()
        self._earlier: dict[tuple[int, int], Counter] = {}

    def add_region(self, number: int) -> None:
        """Make the region's device in the network namespace that this process is in, and the hub's end of it."""
        self._regions[number] = here = namespaces.this_namespace()
        command = (
            f"link add {namespaces.DEVICE} address {_mac(number, 2)} gso_max_segs 1 type veth "
            f"peer name {_port(number)} address {_mac(number, 1)} gso_max_segs 1 netns /proc/self/fd/{self._hub}"
        )
        namespaces.run_batch("ip", [command], pass_fds=(self._hub,))
        namespaces.enter(self._hub)
        first = namespaces.address(number)
        namespaces.run_batch(
            "ip",
            [
                f"link set {_port(number)} mtu {namespaces.MTU_BYTES} txqueuelen 10000 up",
                f"neigh add {first} lladdr {_mac(number, 2)} dev {_port(number)} nud permanent",
                f"route add 10.{number}.0.0/16 via {first} dev {_port(number)} onlink",
            ],
        )
        namespaces.enter(here)

    def way_out(self, number: int) -> list[str]:
        """The `ip` commands after which a region, its device up, knows the hub."""
        return [f"neigh add {HUB_ADDRESS} lladdr {_mac(number, 1)} dev {namespaces.DEVICE} nud permanent"]

    def connect(self, pairs: Iterable[tuple[int, int]], seed: int) -> None:
        """Make the links, without delay at first. The seed is not used: netem has its own."""
        self._pairs, nothing = list(pairs), self._travel(0.0, 0.0, 0.0)
        self._leaf = dict.fromkeys(self._pairs, nothing)
        self._earlier = {pair: Counter() for pair in self._pairs}
        hub = [command for number in self._regions for command in tc.root(_port(number))]
        for source, target in self._pairs:
            hub += tc.link(_port(target), "src", source, nothing)
        self._tc(self._hub, hub)
        for number, namespace in self._regions.items():
            commands = tc.root(namespaces.DEVICE)
            for source, target in self._pairs:
                if source == number:
                    commands += tc.link(namespaces.DEVICE, "dst", target, tc.fifo(None))
            self._tc(namespace, commands)

    def set(self, links: Iterable[tuple[tuple[int, int], dict]]) -> None:
        """Give links new settings: pairs with the fields of `LinkSettings`."""
        by_region: dict[int, list[str]] = {}
        hub = []
        for pair, settings in links:
            source, target = pair
            by_region.setdefault(source, []).extend(
                tc.shape(namespaces.DEVICE, target, settings["rate_bps"], settings["queue_bytes"])
            )
            leaf = self._travel(settings["delay_ms"], settings["jitter_ms"], settings["loss"])
            self._leaf[pair] = leaf
            if pair not in self._is_cut:
                hub.append(tc.travel(_port(target), source, leaf))
        self._tc(self._hub, hub)
        for number, commands in by_region.items():
            self._tc(self._regions[number], commands)

    def cut(self, pairs: Iterable[tuple[int, int]], is_cut: bool) -> None:
        """Cut or heal links. What is on its way when a link is cut is lost as well."""
        changing = [pair for pair in pairs if (pair in self._is_cut) != is_cut]
        before = self._read(changing)
        commands = []
        for source, target in changing:
            pair, port = (source, target), _port(target)
            if is_cut:
                self._is_cut.add(pair)
                commands.append(tc.cut(port, source))
                self._earlier[pair] += Counter(before[pair]["travelled"])
            else:
                self._is_cut.discard(pair)
                commands.append(tc.heal(port, source, self._leaf[pair]))
                self._earlier[pair]["cut"] += self._vanished(pair, before[pair])
        self._tc(self._hub, commands)

    def counters(self, pairs: Iterable[tuple[int, int]]) -> list[dict]:
        """What these links carried and dropped so far. Packets lost in the instant of a cut count as cut."""
        pairs = list(pairs)
        read = self._read(pairs)
        return [self._counted(pair, read[pair]) for pair in pairs]

    def lateness(self) -> dict:
        """Nothing: netem does not say how late it is."""
        return {}

    def serve(self, watched: dict[int, Callable[[], None]]) -> None:
        """Wait for requests; the kernel carries the packets. An exception of a watched call ends it."""
        while True:
            for descriptor in select.select(list(watched), (), ())[0]:
                watched[descriptor]()

    def _read(self, pairs):
        """Of each pair, tc's words of the fifo that its packets leave, and what netem delivered and lost since."""
        hub = self._leaves(self._hub) if pairs else {}
        regions = {source: self._leaves(self._regions[source]) for source in {source for source, _ in pairs}}
        read = {}
        for source, target in pairs:
            end = hub[_port(target), source]
            travelled = {"delivered": end["packets"], "bytes_delivered": end["bytes"], "lost": end["drops"]}
            if (source, target) in self._is_cut:
                travelled = {}
            read[source, target] = {"fifo": regions[source][namespaces.DEVICE, target], "travelled": travelled}
        return read

    def _vanished(self, pair, read):
        """Packets that left the fifo of a cut link and neither arrived, nor were lost, nor cut before."""
        earlier = self._earlier[pair]
        return max(0, read["fifo"]["packets"] - earlier["delivered"] - earlier["lost"] - earlier["cut"])

    def _counted(self, pair, read):
        fifo, total = read["fifo"], self._earlier[pair] + Counter(read["travelled"])
        is_cut = pair in self._is_cut
        cut = total["cut"] + (self._vanished(pair, read) if is_cut else 0)
        travelling = fifo["packets"] - total["delivered"] - total["lost"] - cut
        return {
            "packets_sent": fifo["packets"] + fifo["drops"] + fifo["qlen"],
            "bytes_sent": None,
            "packets_delivered": total["delivered"],
            "bytes_delivered": total["bytes_delivered"],
            "packets_lost": total["lost"],
            "bytes_lost": None,
            "packets_queue_dropped": fifo["drops"],
            "bytes_queue_dropped": None,
            "packets_cut": cut,
            "bytes_cut": None,
            "packets_device_dropped": 0,
            "bytes_device_dropped": 0,
            "packets_in_flight": fifo["qlen"] + travelling,
            "bytes_in_flight": None,
            "bytes_backlog": fifo["backlog"],
            "mean_late_ms": None,
            "worst_late_ms": None,
        }

    def _leaves(self, namespace):
        return tc.leaves(json.loads(self._inside(namespace, ["tc", "-s", "-j", "qdisc", "show"])))

    def _tc(self, namespace, commands):
        if commands:
            self._inside(namespace, ["tc", "-batch", "-"], "".join(f"{command}\n" for command in commands))

    def _inside(self, namespace, words, text=""):
        home = namespaces.this_namespace()
        try:
            namespaces.enter(namespace)
            done = subprocess.run(words, input=text.encode(), capture_output=True, check=False)
        finally:
            namespaces.enter(home)
            os.close(home)
        if done.returncode:
            raise LabError(f"tc says {done.stderr.decode(errors='replace').strip()!r}.")
        return done.stdout


def _port(number):
    return f"region{number}"


def _mac(number, end):
    return f"02:00:00:00:{number:02x}:{end:02x}"
