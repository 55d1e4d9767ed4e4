"""Check a lab: which network it measured, whether emulated links delivered what was requested, how full links were."""

from collections.abc import Mapping
from typing import Any

from wanbench.checks import check_kind
from wanbench.findings import Finding
from wanbench.formatting import count, number

from .verdicts import Verdicts

__all__ = ["Verdicts", "network"]


def network(lab: Mapping[str, Any]) -> Finding:
    """
    Return a finding that states which network a run measured: emulated links or the real one.

    The finding's `n` is the number of emulated links, or of the hosts on the real network.

    lab: The lab's entry in the run's manifest (`Run.lab`).
    """
    check_kind("lab", lab, Mapping)
    links, hosts = lab.get("links") or [], lab.get("hosts") or []
    if links:
        delays = [link["delay_ms"] for link in links]
        ends = list(dict.fromkeys(number(delay, 1) for delay in (min(delays), max(delays))))
        sentence = (
            f"The network is emulated: {count(len(links), 'link')} with a one-way delay of {' to '.join(ends)} ms "
            "at the start of the run. These delays were set, so the RTTs only check the pipeline; the throughput of "
            "TCP over the paths is measured."
        )
    else:
        types = sorted({host["instance_type"] for host in hosts if host.get("instance_type")})
        of = f" ({', '.join(types)})" if types else ""
        regions = len({host["region"] for host in hosts})
        sentence = (
            f"The network is the real one between {count(len(hosts), 'host')} of lab {lab.get('kind')}{of} in "
            f"{count(regions, 'region')}. None of its properties was set, so RTT and throughput are both measured."
        )
    n = len(links) or len(hosts)
    return Finding("network", sentence, None, None, None, "", n, None, "counted in the run's manifest", "none")
