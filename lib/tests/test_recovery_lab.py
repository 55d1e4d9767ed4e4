"""
Recovery: on the local lab the truth is known; the models of TCP find it from throughput and round-trip times.

The window's truth is what the receivers advertise, as the senders' kernels tell (`ss -ti`, snd_wnd).
"""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from patience import three_attempts
from reading import read_iperf3

from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings
from wanbench.methods.lab import Verdicts, link_verdicts
from wanbench.methods.tcp import window_fit
from wanbench.methods.tcp.models import advertised_window_bytes
from wanbench.pages.intercloud_throughput import loss, tcp_verdicts

pytestmark = [pytest.mark.lab, pytest.mark.timing]

REGIONS = ["aws:r-1", "aws:r-2", "gcp:r-3", "gcp:r-4", "azure:r-5"]
RTTS_MS = dict(zip(combinations(REGIONS, 2), (10, 14, 20, 28, 100, 120, 140, 160, 180, 200), strict=True))
FAR_MS = 100
RATE_BPS, QUEUE_BYTES = 10e6, 100_000
"""Of the near links only: a slow link would lengthen the round trip by the time that it takes to send a window."""
BUFFER_BYTES = 131_072
PAYLOAD = 1448 / 1500
LOSSES = {"reno": (0.002, 0.01), "cubic": (0.0005, 0.002, 0.01)}


def transfer(lab, pair, port, *options, watch_s=None):
    """Table `transfers` of one iperf3 test, and the largest window that the receiver advertised while it ran."""
    source, target = (lab.host(region) for region in pair)
    server = target.start(["iperf3", "-s", "-1", "--forceflush", "-p", str(port)])
    try:
        server.wait_for_output("listening", 60)
        client = source.start(["iperf3", "-J", "-c", target.address, "-p", str(port), *options])
        windows = []
        for _ in range(3 if watch_s else 0):
            time.sleep(watch_s / 3)
            shown = source.run(["ss", "-tinO", "dst", f"{target.address}:{port}"], timeout_s=10).stdout.decode()
            lines = [line for line in shown.splitlines() if "bytes_acked" in line]
            sending = max(lines, key=lambda line: int(re.search(r"bytes_acked:(\d+)", line)[1]), default="")
            windows += [int(size) for size in re.findall(r"snd_wnd:(\d+)", sending)]
        rows, _ = read_iperf3(client.wait(60).stdout)
    finally:
        server.stop()
    rows = rows.assign(run_id="lab", from_region=pair[0], to_region=pair[1])
    return rows, max(windows, default=np.nan)


def rtt_ms(lab, pair):
    """The minimum RTT of a few echoes without load."""
    command = ["ping", "-n", "-c", "10", "-i", "0.05", lab.host(pair[1]).address]
    shown = lab.host(pair[0]).run(command, timeout_s=30).stdout.decode()
    return min(float(rtt) for rtt in re.findall(r"time=([\d.]+) ms", shown))


def links_table(links):
    return pd.DataFrame(
        [
            {"run_id": "lab", "from_region": a, "to_region": b, "loss": each.loss, "rate_bps": each.rate_bps}
            for (a, b), each in links.items()
        ]
    )


@three_attempts
def test_the_window_and_the_rate_of_the_links_are_found():
    sysctls = {"net.ipv4.tcp_rmem": f"4096 {BUFFER_BYTES} {BUFFER_BYTES}"}
    links = {}
    for (a, b), rtt in RTTS_MS.items():
        limits = {"rate_bps": RATE_BPS, "queue_bytes": QUEUE_BYTES} if rtt < FAR_MS else {}
        links[a, b] = links[b, a] = LinkSettings(rtt / 2, **limits)
    flooded = (REGIONS[-1], "azure:r-6")
    links[flooded] = links[flooded[::-1]] = LinkSettings(5, rate_bps=RATE_BPS, queue_bytes=QUEUE_BYTES)
    with (
        LocalLab([*REGIONS, flooded[1]], links, sysctls=sysctls, seed=1) as lab,
        ThreadPoolExecutor(len(RTTS_MS) + 1) as threads,
    ):
        rtts = list(threads.map(lambda pair: rtt_ms(lab, pair), RTTS_MS))
        udp = threads.submit(transfer, lab, flooded, 5400, "-u", "-b", "12M", "-t", "2", "-O", "1")
        run = threads.map(
            lambda pair, port: transfer(lab, pair, port, "-t", "3", "-O", "2", watch_s=4), RTTS_MS, range(5300, 5310)
        )
        transfers, advertised = zip(*run, strict=True)
    transfers = pd.concat(transfers, ignore_index=True)
    pairs = transfers[["from_region", "to_region", "throughput_bps"]].assign(rtt_ms=rtts, distance_km=1000.0)
    fit = window_fit.fit_window(pairs, resamples=200)
    if np.isnan(advertised).all():
        pytest.skip("ss of this machine does not show snd_wnd")
    far = np.array(list(RTTS_MS.values())) >= FAR_MS
    truth = float(np.median(np.array(advertised)[far]))
    share = truth / BUFFER_BYTES
    assert truth == pytest.approx(advertised_window_bytes(BUFFER_BYTES), rel=0.06) or share == 0.5
    rows = Verdicts.join(tcp_verdicts.window(fit.window, truth), tcp_verdicts.capacity(fit.capacity, RATE_BPS)).rows
    assert list(rows.verdict) == ["within", "within"], rows.to_string()
    assert set(fit.pairs.limit[fit.pairs.rtt_ms >= FAR_MS]) == {"window"}
    rate = link_verdicts.rate(udp.result()[0], links_table(links)).rows
    assert list(rate.verdict) == ["within"], rate.to_string()


@three_attempts
def test_the_loss_of_a_link_is_found_from_throughput():
    names = {(name, share): f"{name} {share}" for name, losses in LOSSES.items() for share in losses}
    links = {}
    for (_, share), region in names.items():
        links["here", region], links[region, "here"] = LinkSettings(10, loss=share), LinkSettings(10)
    with LocalLab(["here", *names.values()], links, seed=2) as lab:

        def one(cell, port):
            name, share = cell
            streams = "2" if share < 0.001 else "4"
            options = ["-C", name, "-t", "4", "-O", "2", "-P", streams]
            return transfer(lab, ("here", names[cell]), port, *options)[0]

        with ThreadPoolExecutor(len(names)) as threads:
            transfers = pd.concat(threads.map(one, names, range(5300, 5300 + len(names))), ignore_index=True)
    with patch.object(loss, "LEVEL", 0.999), patch.object(tcp_verdicts, "LEVEL", 0.999):
        rows = tcp_verdicts.loss(transfers, links_table(links)).rows
    assert len(rows) == len(names)
    assert set(rows.verdict) == {"within"}, rows.to_string()
    assert set(rows.requested) == {0.0005, 0.002, 0.01}
    ratio = rows.delivered / rows.requested
    assert ratio.between(0.4, 2.5).all() and 0.7 < np.exp(np.log(ratio).mean()) < 1.4, rows.to_string()
    most = rows[rows.requested == 0.01]
    assert (most.high / most.low < 8).all()
