"""Compare page 02's survey by IPv6 and by IPv4, twice each, in turn: `python benchmarks/ip_versions.py`."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from measured import record

from wanbench.measure import campaign, experiments, labs, plan
from wanbench.methods.regions import dyadic
from wanbench.read import ingest

REGIONS = ["aws:eu-west-1", "aws:us-east-1", "aws:ap-northeast-1", "gcp:europe-west2"]
REGIONS += ["gcp:us-west1", "gcp:asia-southeast1", "azure:westeurope", "azure:canadacentral"]
ORDER = (4, 6, 6, 4)  # so that a steady drift of the machine is the same for both
RATE_BPS, WINDOW_BYTES, MTU_BYTES, MARGIN = 50e6, 262_144, 1500, 0.01
PAIR = ["from_region", "to_region"]


def survey(ip_version: int, turn: int):
    """Run page 02's survey by an IP version, 4 or 6."""
    ping = experiments.Ping(interval_s=0.05, ip_version=ip_version)
    iperf3 = experiments.Iperf3(omit_s=1, window_bytes=WINDOW_BYTES, ip_version=ip_version)
    tests = plan.make_plan(regions=REGIONS, experiments=[ping, iperf3], rate_bps=RATE_BPS, seed=1)
    links = labs.geodesic_links(REGIONS, rate_bps=RATE_BPS)
    return campaign.run(tests, links, lab="local", campaign=f"ip-versions-{turn}")


def ratios(runs, *, on_the_wire: bool) -> pd.Series:
    """Return log(throughput by IPv6 / throughput by IPv4) by ordered pair, of the payload or of whole packets."""
    parts = pd.concat([ingest.read_run(run.folder)["transfers"] for run in runs])
    share = parts.mss_bytes.astype(float) / MTU_BYTES if on_the_wire else 1.0
    logs = np.log(parts.throughput_bps / share).groupby([*(parts[name] for name in PAIR), parts.ip_version]).mean()
    return logs.unstack()[6] - logs.unstack()[4]


def equal(runs) -> bool:
    """
    Print both ratios with 90 % intervals; return whether the interval of the ratio on the wire is within the margin.

    This is a test of equivalence at 5 %, by two one-sided tests.
    """
    for on_the_wire in (False, True):
        logs = ratios(runs, on_the_wire=on_the_wire)
        ends = [logs.index.get_level_values(name).map(REGIONS.index).to_numpy() for name in PAIR]
        mean, half = dyadic.ratio(logs.to_numpy(), np.ones(len(logs)), *ends, len(REGIONS), 0.90)
        low, value, high = np.exp([mean - half, mean, mean + half])
        what = "bytes on the wire" if on_the_wire else "payload"
        print(f"IPv6 over IPv4, {what}: {value:.4f} (90 % interval {low:.4f} to {high:.4f}), {len(logs)} pairs")
    record("bytes on the wire by IPv6 over IPv4, 56 pairs", float(value), "times", bound="90 % interval within 1 %")
    return low > 1 - MARGIN and high < 1 + MARGIN


if __name__ == "__main__":
    sys.exit(not equal([survey(version, turn) for turn, version in enumerate(ORDER, 1)]))
