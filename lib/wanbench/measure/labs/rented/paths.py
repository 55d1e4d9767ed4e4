"""Two paths between the same hosts: the internet, and the private link that joins the networks they are in."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from wanbench.checks import check_choice
from wanbench.measure.labs.base import Host

from .resources import everywhere

INTERNET, PRIVATE = "internet", "private"
PATHS = (INTERNET, PRIVATE)
RULES = """table ip wanbench_path
delete table ip wanbench_path
table ip wanbench_path {{
  chain leaving {{
    type nat hook output priority -100; policy accept;
{lines}
  }}
}}
"""
"""For nft; the first two lines remove the table of the previous path, whether or not there is one."""


class Paths:
    """
    The path on which hosts reach each other's public addresses. New connections take the path that was
    selected last.

    On the private path, a host sends packets for the public address of a host in another region to that
    host's private address instead. Programs, and the addresses that brokers advertise, stay the same, so
    trials can alternate.

    Parameters
    ----------
    hosts : sequence of (Host, str)
        Each with its private address; its `address` is the public one.
    """

    def __init__(self, hosts: Sequence[tuple[Host, str]]):
        self._hosts = list(hosts)

    def use(self, name: str) -> None:
        """Have all hosts use the path of this name, one of `PATHS`; CommandError if one cannot."""
        check_choice("path", name, PATHS)
        everywhere(lambda host: self._set(host, name), [host for host, _ in self._hosts])

    def _set(self, host, name):
        lines = [
            f"    ip daddr {other.address} dnat to {private}"
            for other, private in self._hosts
            if name == PRIVATE and other.region != host.region
        ]
        target = f"{host.scratch}/path.nft"
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "rules")
            source.write_text(RULES.format(lines="\n".join(lines)))
            host.put(source, target)
        host.run(["nft", "-f", target], timeout_s=30)
