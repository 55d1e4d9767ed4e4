"""
Links made by the kernel's netem, behind the same face as `relay.Relay`. Imported by `keeper`.

A star: each region's device is one end of a veth pair whose other end is in a hub, a namespace that does nothing
but forward. What the commands are and why: `tc`.

What differs from the relay. A packet travels first (and may be lost), then waits for the rate, so a lost one
takes none of it. The jitter is even, not normal, and drawn anew for each packet, so `jitter_correlation_s` has no
effect, and packets that are close together share the longest delay among them. The random numbers are the
kernel's: a seed has no effect. `tc` counts the packets that it drops, not their bytes, so the bytes of dropped
packets are None as soon as there are any. Nothing says how late packets were. A TTL arrives one less.

On a kernel without netem the tests cover all of this except delay, jitter and loss themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable

from wanbench.errors import LabError
from wanbench.links import namespaces, tc

_REAP_EVERY_S = 1.0


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
        self._queue_bytes: dict[tuple[int, int], int | None] = {}
        self._is_cut: set[tuple[int, int]] = set()
        # What leaves at the hub had counted when they were replaced, by a cut or its healing.
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

    def next_hop(self, number: int) -> str:
        """The link-layer address of the hub's end of a region's device."""
        return _mac(number, 1)

    def connect(self, pairs: Iterable[tuple[int, int]], seed: int) -> None:
        """Make the links, without delay at first. The seed is not used: netem has its own."""
        pairs, by_region = list(pairs), {number: tc.root(namespaces.DEVICE) for number in self._regions}
        hub = [command for number in self._regions for command in tc.root(_port(number))]
        for source, target in pairs:
            by_region[source] += tc.link(namespaces.DEVICE, "dst", target, self._travel(0.0, 0.0, 0.0))
            hub += tc.link(_port(target), "src", source, tc.fifo(None))
        self._queue_bytes = dict.fromkeys(pairs)
        self._earlier = {pair: Counter() for pair in pairs}
        self._tc(self._hub, hub)
        for number, commands in by_region.items():
            self._tc(self._regions[number], commands)

    def set(self, links: Iterable[tuple[tuple[int, int], dict]]) -> None:
        """Give links new settings: pairs with the fields of `LinkSettings`."""
        by_region, hub = {}, []
        for (source, target), settings in links:
            leaf = self._travel(settings["delay_ms"], settings["jitter_ms"], settings["loss"])
            by_region.setdefault(source, []).append(tc.travel(namespaces.DEVICE, target, leaf))
            hub.append(tc.rate(_port(target), source, settings["rate_bps"]))
            self._queue_bytes[source, target] = settings["queue_bytes"]
            if (source, target) not in self._is_cut:
                hub.append(tc.queue(_port(target), source, settings["queue_bytes"]))
        self._tc(self._hub, hub)
        for number, commands in by_region.items():
            self._tc(self._regions[number], commands)

    def cut(self, pairs: Iterable[tuple[int, int]], is_cut: bool) -> None:
        """Cut or heal links. What waits for the rate is lost, and what would arrive during the cut."""
        changing = [pair for pair in pairs if (pair in self._is_cut) != is_cut]
        hub = self._leaves(self._hub) if changing else {}
        commands = []
        for pair in changing:
            source, port = pair[0], _port(pair[1])
            self._earlier[pair] += self._at_hub(pair, hub)
            if is_cut:
                self._is_cut.add(pair)
                self._earlier[pair]["cut"] += hub[port, source]["qlen"]
                commands.append(tc.cut(port, source))
            else:
                self._is_cut.discard(pair)
                commands.append(tc.heal(port, source, self._queue_bytes[pair]))
        self._tc(self._hub, commands)

    def counters(self, pairs: Iterable[tuple[int, int]]) -> list[dict]:
        """What these links carried and dropped so far; a packet in the instant of a cut may be missing."""
        pairs = list(pairs)
        # The hub first: what is counted there has been counted by the regions before.
        hub = self._leaves(self._hub) if pairs else {}
        regions = {source: self._leaves(self._regions[source]) for source in {source for source, _ in pairs}}
        counted = []
        for pair in pairs:
            travel = regions[pair[0]][namespaces.DEVICE, pair[1]]
            end = self._earlier[pair] + self._at_hub(pair, hub)
            sent = travel["packets"] + travel["drops"] + travel["qlen"]
            arrived = end["delivered"] + end["queue_dropped"] + end["cut"]
            counted.append(
                {
                    "packets_sent": sent,
                    "bytes_sent": None if travel["drops"] else travel["bytes"] + travel["backlog"],
                    "packets_delivered": end["delivered"],
                    "bytes_delivered": end["bytes_delivered"],
                    "packets_lost": travel["drops"],
                    "bytes_lost": _bytes_of(travel["drops"]),
                    "packets_queue_dropped": end["queue_dropped"],
                    "bytes_queue_dropped": _bytes_of(end["queue_dropped"]),
                    "packets_cut": end["cut"],
                    "bytes_cut": _bytes_of(end["cut"]),
                    "packets_device_dropped": 0,
                    "bytes_device_dropped": 0,
                    "packets_in_flight": sent - travel["drops"] - arrived,
                    "bytes_in_flight": None,
                    "bytes_backlog": hub[_port(pair[1]), pair[0]]["backlog"],
                    "mean_late_ms": None,
                    "worst_late_ms": None,
                }
            )
        return counted

    def lateness(self) -> dict:
        """Nothing: netem does not say how late it is."""
        return {}

    def serve(self, watched: dict[int, Callable[[], None]]) -> None:
        """Wait for requests; the kernel carries the packets. An exception of a watched call ends it."""
        while True:
            for descriptor in select.select(list(watched), (), (), _REAP_EVERY_S)[0]:
                watched[descriptor]()
            # Processes whose parent is gone became children of this one, the first.
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass

    def _at_hub(self, pair, hub):
        """What the hub's leaf of a link has counted since it was made."""
        leaf = hub[_port(pair[1]), pair[0]]
        if pair in self._is_cut:
            return Counter(cut=leaf["drops"])
        return Counter(delivered=leaf["packets"], bytes_delivered=leaf["bytes"], queue_dropped=leaf["drops"])

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


def _bytes_of(dropped_packets):
    return None if dropped_packets else 0


def _port(number):
    return f"region{number}"


def _mac(number, end):
    return f"02:00:00:00:{number:02x}:{end:02x}"
