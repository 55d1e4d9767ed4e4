"""
Measure how fast inference by region is, compared with a plain loop: `python benchmarks/inference.py`.

The work is 10,000 bootstrap resamples of the regions of a simulated survey (46 regions, 1,035 unordered pairs), for the
slope, intercept and r of RTT on distance. wanbench and the loop run in turn, in this process and on one core, so that a
busy moment affects both; the table gives medians. The loop makes fewer resamples, and its time is extrapolated, which
the table says. Before anything is timed, the results are compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

import numpy as np
from measured import record
from scipy import stats
from simulations import simulated_surveys

from wanbench.methods.regions import dyadic, line
from wanbench.methods.regions.pairs import unordered

GOAL_S = 1.0
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def main() -> int:
    """Measure both in turn, and print a table; return 1 if wanbench takes longer than the goal."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--regions", type=int, default=46, help="regions (default: %(default)s)")
    options.add_argument("--times", type=int, default=10_000, help="resamples (default: %(default)s)")
    options.add_argument("--loop", type=int, default=500, help="turns of a plain loop (default: %(default)s)")
    options.add_argument("--runs", type=int, default=5, help="runs of each, of which the median (default: %(default)s)")
    asked = options.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_THREAD)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    survey = Survey(asked.regions)
    print(f"one core, load {os.getloadavg()[0]:.1f} before, Python {sys.version.split()[0]}, numpy {np.__version__}")
    agree(survey)
    times, loop = asked.times, min(asked.loop, asked.times)
    jobs = {
        "resamples of regions, line: wanbench": (survey.resample, times),
        "resamples of regions, line: plain loop": (survey.resample_loop, loop),
    }
    seconds = {name: [] for name in jobs}
    for run in range(asked.runs):
        for name, (job, turns) in jobs.items():
            start = time.perf_counter()
            job(turns, seed=run)
            seconds[name].append(time.perf_counter() - start)
    whole = table(seconds, {name: turns for name, (_, turns) in jobs.items()}, times)
    late = [name for name in list(jobs) if name in GOALS and statistics.median(seconds[name]) > GOAL_S]
    if times < 10_000 or asked.regions < 46:
        print("The goal is about 10,000 on 46 regions.")
        return 0
    ours, loop_s = whole.values()
    peer = {"peer": "plain loop", "of_peer": loop_s}
    record("10,000 resamples of 46 regions (line on distance)", ours, "s", bound=f"at most {GOAL_S:g}", **peer)
    print(f"Goal, about a second for resamples of the line: {'missed' if late else 'met'}.")
    return 1 if late else 0


GOALS = {"resamples of regions, line: wanbench"}


def table(seconds: dict[str, list[float]], turns: dict[str, int], times: int) -> dict[str, float]:
    """
    Print a row per job, with the ratio of its time to that of wanbench for the same work.

    `seconds` has the time of each run by job, `turns` the resamples of a run by job. Returns the median time (s) for
    `times` resamples by job.
    """
    print(f"{'':44} {'turns':>7} {'median s':>9} {'min s':>8} {'max s':>8} {f's for {times:,}':>13} {'ratio':>7}")
    whole = {name: statistics.median(each) * times / turns[name] for name, each in seconds.items()}
    for name, each in seconds.items():
        ours = f"{name.partition(':')[0]}: wanbench"
        ratio = f"{whole[name] / whole[ours]:7.1f}" if ours != name else f"{'':7}"
        remark = "" if turns[name] == times else "  extrapolated"
        spread = f"{statistics.median(each):9.3f} {min(each):8.3f} {max(each):8.3f}"
        print(f"{name:44} {turns[name]:7,} {spread} {whole[name]:13.3f} {ratio}{remark}")
    return whole


class Survey:
    """Simulate a survey, and resample its regions by wanbench or by a plain loop."""

    def __init__(self, n_regions: int):
        self.pairs = simulated_surveys.survey(n_regions, seed=1, region_ms=5)
        sample = unordered(self.pairs, "rtt_ms")
        self.n = n_regions
        self.cells = self.first, self.second = sample.first, sample.second
        self.x, self.y = sample.frame.distance_km.to_numpy() / 1000, sample.frame.value.to_numpy()

    def resample(self, times, seed):
        weights = dyadic.region_weights(self.n, times, seed)
        scale = line.Standardisation.of(self.x, self.y)
        zx, zy = scale.standard(self.x, self.y)
        moments = np.column_stack([np.ones_like(zx), zx, zy, zx * zx, zx * zy, zy * zy])
        drawn = scale.back(line.solve(dyadic.weighted_sums(weights, moments, self.first, self.second)))
        return np.quantile(drawn, [0.025, 0.975], axis=0)

    def resample_loop(self, times, seed):
        drawn = []
        for weights in dyadic.region_weights(self.n, times, seed):
            copies = (weights[self.first] * weights[self.second]).astype(int)
            x, y = np.repeat(self.x, copies), np.repeat(self.y, copies)
            fit = stats.linregress(x, y)
            drawn.append([fit.intercept, fit.slope, fit.rvalue])
        return np.quantile(drawn, [0.025, 0.975], axis=0)


def agree(survey: Survey) -> None:
    """Exit unless wanbench and the plain loop give the same result."""
    if not np.allclose(survey.resample(200, 3), survey.resample_loop(200, 3)):
        raise SystemExit("resamples: wanbench and the plain loop differ")


if __name__ == "__main__":
    sys.exit(main())
