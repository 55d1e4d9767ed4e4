"""
Summarise the RTTs of each setting (path) as ping does (min, mean, max, mdev), with intervals from repeated ping runs.

mdev is, as in Linux ping, the standard deviation over the n echoes of one run, with divisor n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from wanbench.checks import refusal
from wanbench.formatting import count, percent
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import LEVEL, Estimate, Result
from wanbench.methods.result.means import mean_of
from wanbench.methods.trials.concurrent import round_trips

STATISTICS = {
    "min": ("min_rtt_ms", "minimum RTT of a ping run"),
    "mean": ("mean_rtt_ms", "mean RTT of a ping run"),
    "max": ("max_rtt_ms", "maximum RTT of a ping run"),
    "mdev": ("mdev_rtt_ms", "mdev of a ping run"),
}
# Table 1 of "Measuring the Impact of Latency in Multi-Cloud Transactional Systems" (PacketFabric), from one long ping
# each: a site-to-site VPN over the internet, and a private circuit
PUBLISHED = {
    "internet": {"min": 70.8, "mean": 132.9, "max": 193.2, "mdev": 25.1},
    "private": {"min": 62.1, "mean": 62.5, "max": 68.1, "mdev": 0.7},
}
METHOD = "mean over ping runs; interval from Student's t, with runs as independent units"
ASSUMPTION = "Runs are independent and equally long; pings have the same RTTs as the traffic"
EXTREME = "min and max depend on the number of echoes of a run ({} here): more echoes give more extreme values"


@dataclass(frozen=True, repr=False)
class RttTable(Result):
    """The mean over ping runs of each statistic of RTT in ms; keys are (setting, "min", "mean", "max" or "mdev")."""

    numbers: dict[tuple[str, str], Estimate]

    TITLE = "RTT (ms), measured and in the source"

    @property
    def sentence(self) -> str:
        listed = []
        for setting, published in PUBLISHED.items():
            four = " / ".join(self.numbers[setting, name].formatted.removesuffix(" ms") for name in STATISTICS)
            source = " / ".join(f"{value:g}" for value in published.values())
            basis = self.numbers[setting, "mean"].basis
            listed.append(
                f"RTT over “{setting}”, min / mean / max / mdev: {four} ms ({basis}; in the source {source})."
            )
        return " ".join(listed)

    def formatted_table(self) -> pd.DataFrame:
        rows = {"RTT": list(STATISTICS)}
        for setting, published in PUBLISHED.items():
            own = [self.numbers[setting, name] for name in STATISTICS]
            rows[f"{setting}: measured"] = [number.formatted.removesuffix(" ms") for number in own]
            rows[f"{setting}: {percent(LEVEL)} interval"] = [number.formatted_interval for number in own]
            rows[f"{setting}: source"] = [f"{published[name]}" for name in STATISTICS]
        return pd.DataFrame(rows)


def rtt_table(tables: Mapping[str, pd.DataFrame]) -> RttTable:
    """
    Compute min, mean, max and mdev of RTT over each path, from tables echoes and tests (with column `setting`).

    Raises ParameterError: a path has no answered echo.
    """
    done = tables["tests"]
    done = done[done.outcome == "done"]
    runs = round_trips(tables["echoes"]).merge(done[[*KEY, "setting"]], on=KEY)
    silent = int(runs.mean_rtt_ms.isna().sum())
    runs = runs[runs.mean_rtt_ms.notna()]
    left_out, numbers = (f"{count(silent, 'test')} without an answered echo left out",) * bool(silent), {}
    for name in PUBLISHED:
        own = runs[runs.setting == name]
        if own.empty:
            measured = ", ".join(dict.fromkeys(map(str, runs.setting))) or "none"
            raise refusal("setting", name, f"settings of tests with answered echoes ({measured})")
        low, high = int(own.n_echoes.min()), int(own.n_echoes.max())
        echoes = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        alone = (f"no interval for {name}: a single ping run",) * (len(own) < 2)
        about = {"basis": f"{count(len(own), 'run')} of {echoes} echoes", "method": METHOD, "assumption": ASSUMPTION}
        for statistic, (column, label) in STATISTICS.items():
            notes = (EXTREME.format(echoes),) * (statistic in ("min", "max")) + left_out + alone
            names = {"quantity": f"{statistic} of RTT, {name}", "claim": f"Over {name} the {label} is {{}}"}
            values = own[column].to_numpy(dtype=float)
            numbers[name, statistic] = mean_of(values, LEVEL, unit="ms", warnings=notes, **names, **about)
    return RttTable(numbers)
