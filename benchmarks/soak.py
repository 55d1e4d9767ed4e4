"""
Whether anything grows while surveys repeat: `python benchmarks/soak.py`.

One process measures and tabulates the same small survey many times. After each it counts its resident memory without
pages of files, which the kernel can drop, and without what malloc can give back, Python's blocks of memory, its open
files, its threads, the network namespaces of its descendants, and the bytes of temporary files. The slope per survey is
by least squares over the second half, as the heap settles first; its interval at 95 % allows for autocorrelation over
ten surveys (Newey and West 1987). build/soak.csv has them. Status 1 if an interval lies above 0.

CPython's table of interned strings doubles once, from 1.9 to 3.8 MB, when names of files, which pathlib interns, have
used up its free places: that would be a step at some survey between 20 and 40. It is made to happen at the start. Its
cache of attributes keeps up to 4,096 names; it is emptied before each count.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from measured import ROOT, record
from torture.table import SOAK

UNITS = {
    "resident memory": "KiB",
    "Python's memory": "blocks",
    "open files": "",
    "threads": "",
    "namespaces": "",
    "temporary files": "bytes",
}
LAGS = 10
INTERNED = 200_000  # more than the free places of the table of interned strings after the imports


def main() -> int:
    """Repeat the survey, print the slopes, and keep them."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--surveys", type=int, default=300, help="default: %(default)s")
    surveys = options.parse_args().surveys
    with tempfile.TemporaryDirectory(prefix="soak-", dir="/tmp") as folder:
        temporary = Path(folder, "tmp")
        temporary.mkdir()
        os.environ |= {"WANBENCH_DATA": f"{folder}/data", "TMPDIR": str(temporary), "WANBENCH_SHARE_MACHINE": "1"}
        tempfile.tempdir = None
        start, counted = time.monotonic(), np.zeros((surveys, len(UNITS)))  # made at once, as it would grow
        for n in range(surveys):
            _survey(n)
            for number in range(INTERNED if n == 0 else 0):
                sys.intern(f"soak {number}")
            gc.collect()
            sys._clear_type_cache()
            ctypes.CDLL(None).malloc_trim(0)
            counted[n] = _counts(temporary)
            if n % 10 == 9:
                print(f"{n + 1:4} surveys in {time.monotonic() - start:.0f} s: {counted[n]}", flush=True)
    grows, rows = False, []
    used = counted[surveys // 2 :]
    for (what, unit), values in zip(UNITS.items(), used.T, strict=True):
        fit = sm.OLS(values, sm.add_constant(np.arange(len(values)))).fit(cov_type="HAC", cov_kwds={"maxlags": LAGS})
        slope, (low, high) = fit.params[1], fit.conf_int()[1]
        if np.ptp(values) == 0:  # all are equal: what the fit finds is rounding
            slope = low = high = 0.0
        grows |= low > 0
        print(f"{what}: {slope:.3g} {unit} per survey, 95 % interval {low:.3g} to {high:.3g}, n = {len(values)}")
        bound = f"95 % interval {low:.3g} to {high:.3g} (n = {len(values)}), {'above 0' if low > 0 else 'with 0 in it'}"
        record(f"growth of {what} per survey", slope, unit, bound=bound)
        rows.append((what, unit, slope, low, high, len(values)))
    pd.DataFrame(rows, columns=SOAK).to_csv(ROOT / "build" / "soak.csv", index=False, float_format="%.3g")
    return int(grows)


def _survey(seed: int) -> None:
    from wanbench.measure import campaign, experiments, labs, plan
    from wanbench.read import ingest

    regions = ["aws:eu-west-1", "aws:us-east-1"]
    links = labs.geodesic_links(regions, path_inflation=1.5, rate_bps=20e6)
    measuring = [experiments.Ping(count=5, interval_s=0.05), experiments.Iperf3(duration_s=1)]
    tests = plan.make_plan(regions=regions, experiments=measuring, rate_bps=20e6, seed=seed)
    run = campaign.run(tests, links, lab="local", campaign="soak")
    ingest.summarise_pairs(ingest.tabulate(run.folder))


def _counts(temporary: Path) -> list[float]:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    children = [
        int(one) for task in Path("/proc/self/task").iterdir() for one in (task / "children").read_text().split()
    ]
    own = os.readlink("/proc/self/ns/net")
    others = {link for pid in children if (link := os.readlink(f"/proc/{pid}/ns/net")) != own}
    size = sum(one.stat().st_size for one in temporary.rglob("*") if one.is_file())
    opened = len(os.listdir("/proc/self/fd"))
    blocks = sys.getallocatedblocks()
    return [float(status["RssAnon"].split()[0]), blocks, opened, float(status["Threads"]), len(others), size]


if __name__ == "__main__":
    sys.exit(main())
