"""
Simulation: two runs compared, to see if the exit code is right, and if the summary's interval has the true ratio.

Sizes are those of the preset "quick": 8 regions with 56 ordered pairs, each measured once by 20 pings and one transfer;
5 settings of Kafka in 3 blocks, or 9 in 2, which are too few blocks for a verdict. Differences between runs have three
parts: of each pair or setting, of each host or block, and of a whole run (`common`), which a comparison of two single
runs cannot see. The assumptions about the lab follow from the committed recordings: both directions of a pair differ by
0.6 % (RTT) and 0.8 % (throughput) in survey-quick; in price-performance trials of a setting scatter by 1 % (records) to
12 % (p99), and blocks by half as much or more. The internet is assumed to be five times as noisy as the lab, with a
tenth of the pings in bursts.

"Recorded" sides are halves of recordings. Of survey-quick, a side has one direction of each pair, chosen at random. Of
price-performance, it has in each block either setting "small" or setting "small again", which are equal.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from wanbench.folders import samples_folder
from wanbench.methods.comparison import sides
from wanbench.methods.comparison.sides import Side
from wanbench.methods.comparison.verdicts import MARGIN, SUMMARY, changes
from wanbench.read import ingest
from wanbench.runs import find

from .simulation import MAIN, Outcome

DATASETS = 200
"""The share of wrong exits, if it is 5 %, is then known to within 3 percentage points."""
SETTINGS = [
    {"kind": "survey, lab", "ratio": 1.0},
    {"kind": "survey, internet", "ratio": 1.0},
    {"kind": "survey, 2 runs a side", "ratio": 1.0},
    {"kind": "survey, 3 runs a side", "ratio": 1.0},
    {"kind": "survey, lab", "ratio": 1.1},
    {"kind": "survey, internet", "ratio": 1.1},
    {"kind": "survey, 2 runs a side", "ratio": 1.1},
    {"kind": "survey, 3 runs a side", "ratio": 1.1},
    {"kind": "survey, one pair", "ratio": 1.1},
    {"kind": "trials, 5 settings, 3 blocks", "ratio": 1.0},
    {"kind": "trials, 9 settings, 2 blocks", "ratio": 1.0},
    {"kind": "trials, 5 settings, 3 blocks", "ratio": 1.1},
    {"kind": "recorded survey", "ratio": 1.0},
    {"kind": "recorded survey", "ratio": 1.1},
    {"kind": "recorded trials", "ratio": 1.0},
]
REGIONS = [f"aws:r{k}" for k in range(8)]
PINGS, BURN_IN = 20, 100
# Relative standard deviations: (pings within a test, their range over pairs as a factor, pair, host, whole run).
NETWORKS = {"lab": (0.0026, 2.0, 0.004, 0.002, 0.005), "internet": (0.013, 3.0, 0.02, 0.01, 0.01)}
TRANSFERS = {"lab": 0.008, "internet": 0.04}
# Of trials: scatter of a trial, of a block, of a whole run, from price-performance.
TRIALS = {"records_per_s": (0.012, 0.009, 0.005), "mean_latency_ms": (0.03, 0.015, 0.01)}
TRIALS |= {"p50_ms": (0.07, 0.045, 0.01), "p99_ms": (0.12, 0.06, 0.02)}
HETEROGENEITY = 0.7  # Standard deviation of the logarithm of a setting's scatter: geo-kafka has 0.0 to 14.8 %.


def trial(seed: int, kind: str, ratio: float) -> list[Outcome]:
    """
    Compare two sides: times of side b are `ratio` times those of side a, and rates 1 / `ratio` times those of side a.

    If `kind` ends in "one pair", this is so for one pair only; the other pairs of both sides are alike.
    """
    rng = np.random.default_rng(seed)
    what, _, detail = kind.partition(", ")
    if what == "survey":
        values = _survey(detail, ratio, rng)
    elif what == "trials":
        values = _trials(*(int(word) for word in detail.split() if word.isdigit()), ratio, rng)
    else:
        values = _halves_of_survey(ratio, rng) if what == "recorded survey" else _halves_of_trials(rng)
    found = changes(values, MARGIN, Side("a"), Side("b"))
    code = found.exit_code()
    right = Outcome("exit code", MAIN, code, code, float(ratio != 1))
    summaries = found.rows[(found.rows.key == SUMMARY) & found.rows.low.notna()]
    if "one pair" in kind:
        summaries = summaries.iloc[:0]
    truths = {"RTT": ratio, "throughput": 1 / ratio, "records received by the brokers": 1 / ratio}
    about = ((row.quantity, row.low, row.high, truths.get(row.quantity, ratio)) for row in summaries.itertuples())
    return [right, *(Outcome(f"all, {name}", MAIN, low, high, truth) for name, low, high, truth in about)]


def _survey(detail: str, ratio: float, rng) -> pd.DataFrame:
    network = "internet" if detail == "internet" else "lab"
    within, factor, pair, host, common = NETWORKS[network]
    first, second = np.where(~np.eye(len(REGIONS), dtype=bool))
    usual = {"RTT": rng.uniform(3, 250, len(first)), "throughput": rng.uniform(1e7, 1e8, len(first))}
    scatter = within * factor ** rng.normal(size=len(first))
    frames = []
    for side in (0, 1):
        for run in range(int(detail[0]) if detail.endswith("runs a side") else 1):
            hosts = host * rng.normal(size=(2, len(REGIONS)))
            for k, (quantity, base) in enumerate(usual.items()):
                own = pair if k == 0 else TRANSFERS[network]
                logs = np.log(base) + hosts[k][first] + hosts[k][second] + own * rng.normal(size=len(first))
                logs += common * rng.normal()
                change = side * np.log(ratio) * (1 - 2 * k)
                logs += change * (first * 10 + second == 1) if detail == "one pair" else change
                known = np.full((len(first), 2), np.nan)
                if k == 0:
                    pings = np.exp(logs)[:, None] * (1 + _pings(scatter, network == "internet", rng))
                    logs = np.log(np.median(pings, axis=1))
                    known = np.array([sides.scatter(pd.Series(row)) for row in pings])
                ends = {"first": np.array(REGIONS)[first], "second": np.array(REGIONS)[second]}
                about = {"side": side, "quantity": quantity, "unit": "ms", "run_id": f"{side} {run}", "block": ""}
                about |= {"value": np.exp(logs), "variance": known[:, 0], "freedom": known[:, 1]}
                frames.append(pd.DataFrame(ends | about))
    values = pd.concat(frames, ignore_index=True)
    return values.assign(key=values["first"] + " to " + values.second)


def _pings(scatter: np.ndarray, bursty: bool, rng) -> np.ndarray:
    """Return relative deviations of pings (pairs, pings): autoregressive with coefficient 0.6, bursts if `bursty`."""
    drawn = rng.normal(size=(len(scatter), PINGS + BURN_IN)) * 0.8
    deviations = scatter[:, None] * lfilter([1.0], [1.0, -0.6], drawn, axis=1)[:, BURN_IN:]
    if not bursty:
        return deviations
    late = rng.random(deviations.shape) < 0.1
    return deviations + late * 10 * scatter[:, None] * rng.exponential(size=deviations.shape)


def _trials(n_settings: int, n_blocks: int, ratio: float, rng) -> pd.DataFrame:
    rows = []
    for name, (scatter, block_sd, common) in TRIALS.items():
        quantity, unit = sides.TRIAL_VALUES[name]
        own = scatter * np.exp(HETEROGENEITY * rng.normal(size=n_settings) - HETEROGENEITY**2 / 2)
        base, warming = rng.uniform(5, 8, n_settings), block_sd * rng.normal(size=n_blocks)
        for side in (0, 1):
            change = side * np.log(ratio) * (-1 if unit == "records/s" else 1) + common * rng.normal()
            blocks = warming + block_sd * rng.normal(size=n_blocks)
            logs = base[:, None] + change + blocks + own[:, None] * rng.normal(size=(n_settings, n_blocks))
            for (k, block), log in np.ndenumerate(logs):
                rows.append((side, quantity, unit, f"setting {k}", f"{side}", block, np.exp(log)))
    values = pd.DataFrame(rows, columns=["side", "quantity", "unit", "key", "run_id", "block", "value"])
    return values.assign(first=values.key, second=values.key, variance=np.nan, freedom=np.nan)


@cache
def _recorded(campaign: str) -> pd.DataFrame:
    return sides.values_of(ingest.read_run(find(samples_folder(), campaign)[0].folder))


def _halves_of_survey(ratio: float, rng) -> pd.DataFrame:
    """Put one direction of each pair into side a, and the opposite direction into side b."""
    values = _recorded("survey-quick")
    ends = np.sort(values[["first", "second"]].to_numpy(), axis=1)
    key = pd.Series([f"{one} and {other}" for one, other in ends], index=values.index)
    swapped = dict(zip(sorted(set(key)), rng.integers(2, size=key.nunique()), strict=True))
    side = ((values["first"] == ends[:, 0]).to_numpy() + key.map(swapped).to_numpy()) % 2
    change = np.where(side == 0, 1.0, np.where(values.quantity == "RTT", ratio, 1 / ratio))
    return values.assign(key=key, side=side, first=ends[:, 0], second=ends[:, 1], value=values.value * change)


def _halves_of_trials(rng) -> pd.DataFrame:
    """Divide two equal settings between sides a and b, anew at random in each block and quantity."""
    values = _recorded("price-performance").query("key in ('small', 'small again')")
    swapped = {name: rng.integers(2) for name in sorted(set(values.quantity + values.block.astype(str)))}
    side = ((values.key == "small").astype(int) + (values.quantity + values.block.astype(str)).map(swapped)) % 2
    return values.assign(side=side, key="small", first="small", second="small")
