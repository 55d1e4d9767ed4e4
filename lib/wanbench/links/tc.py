"""
The `tc` commands that make links of netem, as text, and what `tc` says they carried. Pure.

Each region has one veth pair to a hub. On the region's side, an HTB class per destination has the delay, jitter
and loss, made by netem; on the hub's side, an HTB class per source has the rate, and its fifo the queue. Not
the other way round: a queue in the sender's own namespace pushes back on the sender's TCP, and never overflows.
Sizes are those of IP packets: a size table takes the Ethernet header off.

References: tc-htb(8), tc-netem(8), tc-stab(8), tc-u32(8).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

UNLIMITED_BPS = 100_000_000_000
"""The rate of a class that is not to limit anything; also what keeps netem from reordering."""

UNLIMITED_QUEUE_BYTES = 1_000_000_000
_LONGEST_BURST_S = 0.001
_LEAST_BURST_BYTES = 1_600
_ETHERNET_BYTES = 14
_NETEM_PACKETS = 1_000_000
_NOWHERE = 0xFFFF
_LEAF, _CUT_LEAF = 0x100, 0x1000


def trial(leaf: str) -> list[str]:
    """Commands that succeed in a scratch namespace exactly where the kernel can make links with such leaves."""
    return [*root("lo"), *link("lo", "src", 1, leaf), cut("lo", 1)]


def root(device: str) -> list[str]:
    """Commands that make a device drop what no link is for."""
    return [
        f"qdisc add dev {device} root handle 1: stab overhead -{_ETHERNET_BYTES} htb default {_NOWHERE:x}",
        f"class add dev {device} parent 1: classid 1:{_NOWHERE:x} {_htb(None)}",
        f"qdisc add dev {device} parent 1:{_NOWHERE:x} handle {_NOWHERE:x}: blackhole",
    ]


def link(device: str, match: str, number: int, leaf: str) -> list[str]:
    """
    Commands that make the class for one other region.

    Parameters
    ----------
    device : str
        The device whose packets are meant.
    match : str
        "dst" where the other region is where they go, "src" where it is where they come from.
    number : int
        Of the other region.
    leaf : str
        The class's queueing discipline, see `fifo` and `netem`.

    Examples
    --------
    >>> for command in link("wan0", "dst", 2, fifo(65536)):
    ...     print(command)
    class add dev wan0 parent 1: classid 1:2 htb rate 100000000000bit burst 12500000 cburst 12500000 quantum 60000
    qdisc add dev wan0 parent 1:2 handle 102: bfifo limit 65536
    filter add dev wan0 parent 1: protocol ip prio 1 u32 match ip dst 10.2.0.0/16 flowid 1:2
    """
    return [
        f"class add dev {device} parent 1: classid 1:{number:x} {_htb(None)}",
        _leaf("add", device, number, leaf),
        f"filter add dev {device} parent 1: protocol ip prio 1 "
        f"u32 match ip {match} 10.{number}.0.0/16 flowid 1:{number:x}",
    ]


def rate(device: str, number: int, rate_bps: float | None) -> str:
    """The command that sets the rate of a class, on the hub's side."""
    return f"class change dev {device} parent 1: classid 1:{number:x} {_htb(rate_bps)}"


def queue(device: str, number: int, queue_bytes: int | None) -> str:
    """The command that sets the queue of a class that is not cut, on the hub's side."""
    return _leaf("change", device, number, fifo(queue_bytes))


def travel(device: str, number: int, leaf: str) -> str:
    """The command that sets delay, jitter and loss of a class, on the region's side."""
    return _leaf("change", device, number, leaf)


def cut(device: str, number: int) -> str:
    """The command that throws a class's packets away, those in its queue included."""
    return f"qdisc replace dev {device} parent 1:{number:x} handle {_CUT_LEAF + number:x}: blackhole"


def heal(device: str, number: int, queue_bytes: int | None) -> str:
    """The command that undoes `cut`; the rate has stayed."""
    return _leaf("replace", device, number, fifo(queue_bytes))


def fifo(queue_bytes: int | None) -> str:
    """A first-in, first-out queue of so many bytes; None has no limit worth mentioning."""
    return f"bfifo limit {UNLIMITED_QUEUE_BYTES if queue_bytes is None else max(queue_bytes, _LEAST_BURST_BYTES)}"


def netem(delay_ms: float, jitter_ms: float = 0.0, loss: float = 0.0) -> str:
    """
    netem's words for delay, jitter and loss.

    Without a table netem draws the delay evenly from delay ± jitter, so it is given the standard deviation
    times the square root of three; and it draws anew for each packet. The rate, which is too high to matter,
    makes it keep the packets' order.

    Examples
    --------
    >>> netem(20.0)
    'netem limit 1000000 delay 20000us'
    >>> netem(20.0, 1.0, 0.01)
    'netem limit 1000000 delay 20000us 1732us loss random 1% rate 100000000000bit'
    """
    words = f"netem limit {_NETEM_PACKETS} delay {round(delay_ms * 1000)}us"
    if jitter_ms:
        words += f" {round(jitter_ms * 1000 * math.sqrt(3))}us"
    if loss:
        words += f" loss random {loss * 100:.9g}%"
    return f"{words} rate {UNLIMITED_BPS}bit" if jitter_ms else words


def leaves(listing: Iterable[dict]) -> dict[tuple[str, int], dict]:
    """
    What `tc -s -j qdisc show` says of the classes of links.

    Returns
    -------
    dict
        (device, number of the other region) to tc's own words of the class's queueing discipline.
    """
    found = {}
    for qdisc in listing:
        parent = qdisc.get("parent", "")
        if parent.startswith("1:"):
            found[qdisc.get("dev", ""), int(parent[2:], 16)] = qdisc
    return found


def _leaf(verb, device, number, leaf):
    return f"qdisc {verb} dev {device} parent 1:{number:x} handle {_LEAF + number:x}: {leaf}"


def _htb(rate_bps):
    rate_bps = round(rate_bps or UNLIMITED_BPS)
    burst = max(_LEAST_BURST_BYTES, round(rate_bps / 8 * _LONGEST_BURST_S))
    return f"htb rate {rate_bps}bit burst {burst} cburst {burst} quantum 60000"
