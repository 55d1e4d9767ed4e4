"""
Measure how exact and how fast the local lab's links are on this machine: `python benchmarks/relay.py [name ...]`.

Names are rtt, rate, most, flows and open; without names, all are measured, in about two minutes. Figures depend on what
else the machine does; the last column of each table says how late the relay, which forwards the packets, was.
"""

import json
import re
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, permutations
from pathlib import Path

from measured import record

from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings


def mesh(regions, settings):
    return dict.fromkeys(permutations(regions, 2), settings)


def iperf3(lab, source, target, *options, duration_s=5):
    server = lab.host(target).start(["iperf3", "-s", "-1", "--forceflush"])
    try:
        server.wait_for_output("listening", 30)
        command = ["iperf3", "-c", lab.host(target).address, "-J", "-t", str(duration_s), *options]
        return json.loads(lab.host(source).run(command, timeout_s=duration_s + 60).stdout)["end"]
    finally:
        server.stop()


def received_bps(end):
    return end["sum_received"]["bits_per_second"]


class Meter:
    """Measure the processor time of the relay's process, as a share of one processor, and how late it forwards."""

    def __init__(self, lab):
        self.lab = lab
        self.stat = Path("/proc", next(w for w in lab.entering(lab.regions[0]) if "--target" in w)[9:], "stat")

    def __enter__(self):
        self.began, self.used = time.monotonic(), self._used()
        return self

    def __exit__(self, *exception):
        share = (self._used() - self.used) / (time.monotonic() - self.began)
        late = self.lab.lateness()
        self.text = f"{share:6.2f}  {late.get('mean_late_ms') or 0:9.3f}  {late.get('worst_late_ms') or 0:10.1f}"

    def _used(self):
        fields = self.stat.read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100


HEAD = "supervisor's CPU  mean late ms  worst late ms"


def rtt():
    asked = (2, 10, 40, 100, 200, 300)
    regions = ["centre", *map(str, asked)]
    links = {pair: LinkSettings(int(max(pair, key=str.isdigit)) / 2) for pair in _to_centre(regions)}
    with LocalLab(regions, links) as lab, Meter(lab) as meter, ThreadPoolExecutor(len(asked)) as threads:

        def measure(rtt_ms):
            command = ["ping", "-n", "-c", "200", "-i", "0.02", lab.host(str(rtt_ms)).address]
            text = lab.host("centre").run(command, timeout_s=60).stdout.decode()
            return sorted(float(found) for found in re.findall(r"time=([\d.]+)", text))

        print("RTT asked ms      min   median      p95      max   (ping prints whole ms from 100 ms)")
        off_ms = []
        for rtt_ms, got in zip(asked, threads.map(measure, asked), strict=True):
            row = (got[0], statistics.median(got), got[int(len(got) * 0.95)], got[-1])
            print(f"{rtt_ms:12}" + "".join(f"{value:9.2f}" for value in row))
            off_ms.append(abs(row[1] - rtt_ms))
        record("median RTT of a link, 2 to 300 ms asked, off by at most", max(off_ms), "ms")
    print(f"{HEAD}\n{meter.text}\n")


def _to_centre(regions):
    return [pair for pair in permutations(regions, 2) if "centre" in pair]


def rate():
    print(f"rate Mbit/s  delay ms  share received  retransmits  queue drops  {HEAD}")
    off = []
    with LocalLab(["a", "b"], mesh("ab", LinkSettings(1))) as lab:
        for rate_bps in (1e6, 10e6, 100e6, 300e6, 1000e6):
            for delay_ms in (1, 20):
                lab.set_link("a", "b", rate_bps=rate_bps, delay_ms=delay_ms)
                lab.set_link("b", "a", delay_ms=delay_ms)
                before = lab.counters()[0]["packets_queue_dropped"]
                with Meter(lab) as meter:
                    end = iperf3(lab, "a", "b", "-O", "2")
                drops = lab.counters()[0]["packets_queue_dropped"] - before
                share, again = received_bps(end) / rate_bps, end["sum_sent"]["retransmits"]
                off.append(abs(share / (1448 / 1500) - 1))
                print(f"{rate_bps / 1e6:11.0f}{delay_ms:10}{share:16.4f}{again:13}{drops:13}  {meter.text}")
    print("1448 of 1500 bytes are payload: a share of 0.9653 is the whole rate.\n")
    record("rate of a link, 1 to 1,000 Mbit/s asked, off by at most", 100 * max(off), "%")


def most():
    print(f"as fast as it goes, 1 ms RTT       Gbit/s  {HEAD}")
    with LocalLab(["a", "b"], mesh("ab", LinkSettings(0.5))) as lab:
        for name, options in (("1 stream", ()), ("4 streams", ("-P", "4")), ("1 stream, reverse", ("-R",))):
            with Meter(lab) as meter:
                end = iperf3(lab, "a", "b", *options)
            print(f"{name:32}{received_bps(end) / 1e9:9.2f}  {meter.text}")
            record(f"one emulated link in large segments, {name}", received_bps(end) / 1e9, "Gbit/s")
        with Meter(lab) as meter:
            end = iperf3(lab, "a", "b", "-u", "-b", "2G", "-l", "1400")["sum"]
        passed = (end["packets"] - end["lost_packets"]) / end["seconds"]
        print(f"UDP, 1400 bytes, {passed:9.0f} packets/s{end['bits_per_second'] / 1e9:8.2f}  {meter.text}")
    record("one emulated link, packets of 1,400 bytes one by one", passed, "packets/s")
    print()


def flows():
    regions = [f"r{k}" for k in range(46)]
    pairs = list(zip(regions[::2], regions[1::2], strict=True))
    print(f"23 flows at once, 60 ms RTT       Mbit/s    min   max  {HEAD}")
    with LocalLab(regions, mesh(regions, LinkSettings(30))) as lab, ThreadPoolExecutor(23) as threads:
        for name, rate_bps, options in (
            ("window of 256 kB", None, ("-w", "128K")),
            ("links of 50 Mbit/s", 50e6, ()),
            ("links of 100 Mbit/s", 100e6, ()),
        ):
            for pair in pairs:
                lab.set_link(*pair, rate_bps=rate_bps)
            with Meter(lab) as meter:
                got = [
                    received_bps(end) / 1e6
                    for end in threads.map(lambda pair, options=options: iperf3(lab, *pair, *options), pairs)
                ]
            print(f"{name:32}{sum(got):8.0f}{min(got):7.1f}{max(got):6.1f}  {meter.text}")
            record(f"23 flows at once, {name}: the slowest", min(got), "Mbit/s", peer="the fastest", of_peer=max(got))
    print()


def open():
    print("regions    links  open s  one command ms  counters s  close s")
    for count in (8, 46):
        regions = [f"r{k}" for k in range(count)]
        lab = LocalLab(regions, mesh(regions, LinkSettings(10)))
        times = [time.monotonic()]
        with lab:
            times.append(time.monotonic())
            for _ in range(50):
                lab.host("r1").run(["true"], timeout_s=10)
            times.append(time.monotonic())
            lab.counters()
            times.append(time.monotonic())
        times.append(time.monotonic())
        opening, commands, counting, closing = (b - a for a, b in pairwise(times))
        print(f"{count:7}{len(lab.links):9}{opening:8.2f}{commands / 50 * 1000:16.1f}{counting:12.3f}{closing:9.2f}")
        record(f"a lab of {count} regions opens", opening, "s")
    print()


if __name__ == "__main__":
    if reason := LocalLab.unavailable():
        sys.exit(f"No local lab can be opened: {reason}")
    parts = {"rtt": rtt, "rate": rate, "most": most, "flows": flows, "open": open}
    if unknown := set(sys.argv[1:]) - set(parts):
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    for name in sys.argv[1:] or parts:
        parts[name]()
