"""
A rented host does not have its public address: its cloud translates it. Servers that are to be reached under it, and
clients that bind to it, need it on the host.
"""

from __future__ import annotations

import ipaddress
import tempfile
from pathlib import Path

from wanbench.measure.labs.base import Host

RULES = """table ip wanbench {{
  chain arriving {{
    type nat hook prerouting priority dstnat; policy accept;
    tcp dport 22 accept
    ip daddr {private} dnat to {public}
  }}
  chain leaving {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {public} oifname != "lo" snat to {private}
  }}
}}
"""
"""For nft: the inverse of the cloud's translation. SSH, over which our commands arrive, is left alone."""


def own_public_address(host: Host, private: str, public: str) -> None:
    """Give the host its public address, on the loopback interface. Needs ip and nft there, and the rights of root."""
    private, public = str(ipaddress.IPv4Address(private)), str(ipaddress.IPv4Address(public))
    target = f"{host.scratch}/own-address.nft"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "rules"
        source.write_text(RULES.format(private=private, public=public))
        host.put(source, target)
    host.run(["ip", "address", "replace", f"{public}/32", "dev", "lo"], timeout_s=30)
    host.run(["nft", "-f", target], timeout_s=30)
