"""
Measure how long page 14 takes for a year of daily surveys: `python benchmarks/year.py`.

The year is simulated: 46 regions with 2,070 ordered pairs, each tested once a day, with gaps and 20 echoes per test. It
is written as the tables of one run per day. Then the page's analyses run in a separate process, whose time and peak
memory are printed with their bounds of 2 minutes and 4 GiB.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from measured import record

from wanbench.pages import over_time
from wanbench.pages.over_time.values import values_of_tests
from wanbench.read.ingest import CampaignTables
from wanbench.regions import catalogue

BOUND_S, BOUND_GIB = 120, 4
ECHOES = 20


def main() -> int:
    """Write the year, and analyse it; return 1 if a bound is exceeded."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--regions", type=int, default=46, help="regions (default: %(default)s)")
    options.add_argument("--analyse", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.analyse:
        return analyse(asked.analyse)
    with tempfile.TemporaryDirectory() as folder:
        write_year(Path(folder), asked.regions)
        return subprocess.run([sys.executable, __file__, "--analyse", folder], check=False).returncode


def write_year(folder: Path, n_regions: int) -> None:
    """Write tables `tests`, `echoes` and `transfers` of each day, with only the columns that the page reads."""
    clouds = catalogue().query("cloud in ['aws', 'gcp']").name
    values = over_time.simulated_year(sorted(clouds)[:n_regions], tests_per_day=1)
    rng = np.random.default_rng(0)
    for day, part in values.groupby(values.at_utc.dt.strftime("%Y-%m-%d")):
        about = {"run_id": day, "test_id": np.arange(len(part)).astype(str), "attempt": 1}
        tests = part[["from_region", "to_region"]].assign(**about, outcome="done", started_at_utc=part.at_utc)
        echoes = pd.DataFrame({name: np.repeat(value, ECHOES) for name, value in about.items() if name == "test_id"})
        echoes = echoes.assign(run_id=day, attempt=1, lost=False, duplicate=False)
        echoes["rtt_ms"] = np.repeat(part.rtt_ms.to_numpy(), ECHOES) + rng.exponential(0.3, len(echoes))
        transfers = pd.DataFrame(about).assign(throughput_bps=part.throughput_bps.to_numpy(), protocol="TCP")
        transfers = transfers.assign(direction="forward", error=pd.Series(None, dtype="str"))
        target = folder / "tables/campaign=year" / f"date={day}" / f"run={day}"
        target.mkdir(parents=True)
        for name, frame in {"tests": tests, "echoes": echoes, "transfers": transfers}.items():
            frame.to_parquet(target / f"{name}.parquet", index=False)


def analyse(folder: Path) -> int:
    """Do the analyses of the notebook, and print the time of each; return 1 if a bound is exceeded."""
    start = last = time.perf_counter()

    def step(name: str) -> None:
        nonlocal last
        now = time.perf_counter()
        print(f"{name:40}{now - last:8.1f} s", flush=True)
        last = now

    values = values_of_tests(CampaignTables(sorted(folder.glob("tables/*/*/*"))))
    step(f"{len(values):,} tests read")
    for measure in ("rtt_ms", "throughput_bps"):
        found = over_time.changes_of_pairs(values, measure)
        step(f"{measure}: {len(found.changed):,} of {len(found.rows):,} pairs changed")
        found.figure(), found._repr_html_(), found.finding("x")
        step(f"{measure}: figure, table, finding")
        over_time.rhythm(values, found).figure()
        step(f"{measure}: hours and weekdays")
    took_s, peak_gib = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{took_s:.0f} s of {BOUND_S} s, {peak_gib:.2f} GiB of {BOUND_GIB} GiB")
    what = f"page 14's analyses of {len(values):,} tests"
    record(what, took_s, "s", bound=f"at most {BOUND_S}")
    record(f"{what}, memory", peak_gib, "GiB", bound=f"at most {BOUND_GIB}")
    return int(took_s > BOUND_S or peak_gib > BOUND_GIB)


if __name__ == "__main__":
    sys.exit(main())
