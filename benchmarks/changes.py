"""
Find change points in 200 simulated pair-years, and compare with Apache Otava: `python benchmarks/changes.py`.

Both methods see the same daily medians of RTT, of the years by `simulations.pair_years`. Otava needs another version of
numpy, so it runs in a separate environment: `uv venv OTAVA && uv pip install -p OTAVA apache-otava==0.8.0`, then add
`--otava OTAVA/bin/python`. Otava runs once with its defaults, and once so that it reports only changes of at least 3 %,
which are the smallest that are planted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import pandas as pd
from measured import record
from simulations.pair_years import pair_year, score

from wanbench.pages.over_time.levels import find_changes, medians_per_step

WITH_OTAVA = """
import json, sys, time
from otava.analysis import compute_change_points
from otava.series import AnalysisOptions
years, options = json.load(sys.stdin), AnalysisOptions()
found = {}
for least in (0.0, 0.03):
    start = time.perf_counter()
    of = [
        [int(point.index) for point in compute_change_points(
            values, window_len=options.window_len, max_pvalue=options.max_pvalue, min_magnitude=least)[0]]
        for values in years
    ]
    found[f"otava, changes of at least {100 * least:g} %"] = [of, time.perf_counter() - start]
print(json.dumps(found))
"""


def main() -> int:
    """Look for changes by each method, score them, and print a row per method."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--otava", metavar="PYTHON", help="the Python of an environment with apache-otava")
    options.add_argument("--years", type=int, default=200, help="pair-years (default: %(default)s)")
    asked = options.parse_args()
    years = [pair_year(seed) for seed in range(asked.years)]
    medians = [medians_per_step(tests.time_utc, tests.rtt_ms) for tests, _ in years]
    start = time.perf_counter()
    found = [find_changes(one).rows.since[1:].tolist() for one in medians]
    rows = [row("wanbench", found, years, time.perf_counter() - start)]
    if asked.otava:
        given = json.dumps([one.tolist() for one in medians])
        command = [asked.otava, "-I", "-c", WITH_OTAVA]  # -I: without PYTHONPATH, which holds our environment
        done = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True)
        for name, (indices, took_s) in json.loads(done.stdout).items():
            found = [[one.index[k] for k in at] for one, at in zip(medians, indices, strict=True)]
            rows.append(row(name, found, years, took_s))
    print(pd.DataFrame(rows).to_string(index=False))
    ours, otava, of = rows[0], rows[-1] if asked.otava else {}, f"{asked.years} simulated pair-years"
    for name, unit, bound in (("false alarms", "a year", "at most 1"), ("5 % shifts found", "%", "at least 90")):
        peer = {"peer": otava["method"], "of_peer": otava[name]} if otava else {}
        record(f"change points in {of}: {name}", ours[name], unit, bound=bound, **peer)
    return 0


def row(name: str, found: list, years: list, took_s: float) -> dict:
    """Return the scores of a method, summed over the years."""
    total = pd.DataFrame([score(at, planted) for at, (_, planted) in zip(found, years, strict=True)]).sum()
    return {
        "method": name,
        "false alarms": total.false_alarms / len(years),
        "5 % shifts found": 100 * total.detected_5_percent / total.planted_5_percent,
        "others found": f"{total.detected_other} of {total.planted_other}",
        "ms a year": 1e3 * took_s / len(years),
    }


if __name__ == "__main__":
    sys.exit(main())
