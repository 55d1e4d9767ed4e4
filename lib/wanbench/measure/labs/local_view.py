"""Descriptions of a local lab: for a manifest, in a line, in a notebook."""

from __future__ import annotations

import dataclasses
import functools
import os
import platform
import shlex
import subprocess
from html import escape
from pathlib import Path

from wanbench.measure.links import queue_in_bytes
from wanbench.measure.links.launch import is_rootless

EMULATOR = "relay"
"""What makes the links, as a manifest names it. Runs recorded earlier may name another: "netem"."""

_TOOLS = {"iperf3": "--version", "ping": "-V", "ip": "-V", "nsenter": "--version"}
_GLOBAL_SYSCTLS = ("net.core.rmem_max", "net.core.wmem_max")
"""Limits of the buffer that a program asks for with setsockopt; the same in all namespaces of the machine."""
_CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"


def description(lab, lateness: dict, opened: dict) -> dict:
    """What the manifest keeps of a lab, in JSON types."""
    return {
        "kind": lab.kind,
        "emulator": EMULATOR,
        "seed": lab.seed,
        "machine": {
            "system": platform.system(),
            "kernel": platform.release(),
            "architecture": platform.machine(),
            "processors": len(os.sched_getaffinity(0)),
            "rootless": is_rootless(),
        },
        "congestion_control": lab.sysctls[_CONGESTION_CONTROL],
        "congestion_control_by": opened.get("congestion_control_by"),
        "sysctls": {**lab.sysctls, **_global_sysctls()},
        "sysctls_refused": opened.get("refused", {}),
        "tools": tools(),
        "hosts": [
            {"name": host.name, "region": host.region, "address": host.address}
            for hosts in lab.hosts.values()
            for host in hosts
        ],
        "links": [
            {"from_region": a, "to_region": b, **dataclasses.asdict(settings), "queue_bytes": _queue(lab, a, b)}
            for (a, b), settings in lab.links.items()
        ],
        "clock_offset_ms": 0,
        "clock_offset_from": "one machine, one clock",
        "granted": opened.get("granted", {}),
        "lateness": lateness,
    }


def line(lab) -> str:
    """The lab in a line."""
    state = "open" if lab.is_open else "closed"
    return f"<local lab, {state}: {len(lab.regions)} regions, {len(lab.links)} links>"


def html(lab) -> str:
    """The lab as the last expression of a notebook's cell."""
    rows = []
    for region, hosts in lab.hosts.items():
        by_hand = shlex.join(lab.entering(region)) if lab.is_open else "(not open)"
        addresses = ", ".join(host.address for host in hosts)
        cells = (region, addresses, _summary(lab, region), by_hand)
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{word}</th>" for word in ("region", "addresses", "links from here", "a shell there, by hand"))
    return (
        f"<p>{escape(line(lab)[1:-1])}</p><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


@functools.cache
def tools() -> dict[str, str]:
    """The first line of each tool's version output; tools that cannot be run are left out."""
    versions = {}
    for tool, option in _TOOLS.items():
        try:
            done = subprocess.run([tool, option], capture_output=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        if lines:
            versions[tool] = lines[0]
    return versions


def _global_sysctls():
    values = {}
    for name in _GLOBAL_SYSCTLS:
        path = Path("/proc/sys", *name.split("."))
        if path.exists():
            values[name] = path.read_text().strip()
    return values


def socket_buffer_limits() -> dict[str, int] | None:
    """
    See `Lab.socket_buffer_limits`. A namespace sees these and cannot change them; its tcp_rmem and tcp_wmem bound only
    what the kernel gives by itself, to sockets that ask for nothing.
    """
    values = _global_sysctls()
    return {name: int(value) for name, value in values.items()} if len(values) == len(_GLOBAL_SYSCTLS) else None


def _queue(lab, a, b):
    back = lab.links.get((b, a))
    return queue_in_bytes(lab.links[a, b], back and back.delay_ms)


def _summary(lab, region):
    links = {pair: settings for pair, settings in lab.links.items() if pair[0] == region}
    if not links:
        return "none"
    parts = [f"{len(links)}", _span([link.delay_ms for link in links.values()], "ms one way")]
    if rates := [link.rate_bps / 1e6 for link in links.values() if link.rate_bps]:
        parts.append(_span(rates, "Mbit/s"))
    if any(link.jitter_ms for link in links.values()):
        parts.append(_span([link.jitter_ms for link in links.values()], "ms jitter"))
    if any(link.loss for link in links.values()):
        parts.append(_span([link.loss * 100 for link in links.values()], "% loss"))
    if cut := len(lab.cut_pairs & set(links)):
        parts.append(f"{cut} cut")
    return ", ".join(parts)


def _span(values, unit):
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"
