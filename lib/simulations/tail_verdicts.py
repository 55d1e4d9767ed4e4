"""Simulation: verdicts on two systems from trials in blocks, if they are equal or one is slower."""

from __future__ import annotations

import numpy as np

from wanbench.pages.tail_latency.trials import TailTrials
from wanbench.pages.tail_latency.verdicts import verdict

from .latency_trials import trial_tail
from .simulation import MAIN, Outcome

DATASETS = 300
AT = (0.5, 0.9, 0.99, 0.999)
BLOCK_SD, TRIAL_SD = 0.15, 0.05
"""Standard deviations of log latency between blocks, and between trials in a block."""
SECONDS, RATE = 20, 1_000
ALONE = "the row alone"
"""Method name of a verdict as if its row were the only one."""
SETTINGS = [
    *({"kind": kind, "n_blocks": n, "factor": 1.0} for kind in ("bursts", "load regimes") for n in (3, 5, 8)),
    *({"kind": "load regimes", "n_blocks": n, "factor": factor} for n, factor in ((3, 1.5), (5, 1.2), (5, 1.5))),
    {"kind": "bursts", "n_blocks": 5, "factor": 1.5},
]


def trial(seed: int, kind: str, n_blocks: int, factor: float) -> list[Outcome]:
    """
    Simulate two systems; the latencies of the second are longer by `factor`.

    For equal systems, "no difference claimed" counts as covered if no quantile is better or worse. For others, "slower
    is worse" counts as covered if the quantile is worse, and "slower is not better or tied" if no quantile is.
    """
    rng = np.random.default_rng(seed)
    blocks = BLOCK_SD * rng.normal(size=n_blocks)
    sides = [
        TailTrials(
            name,
            [trial_tail(kind, SECONDS, RATE, np.log(times) + block + TRIAL_SD * rng.normal(), rng) for block in blocks],
        )
        for name, times in (("a", 1.0), ("b", factor))
    ]
    found = verdict(*sides, AT)
    rows, ratios = found.rows.set_index("quantile"), dict(zip(AT, found.ratios, strict=True))
    out = [Outcome(f"ratio of p{100 * q:g}", MAIN, ratios[q].low, ratios[q].high, factor) for q in (0.5, 0.99)]
    for method, column in ((MAIN, "verdict"), (ALONE, "verdict_alone")):
        verdicts = rows[column]
        if factor == 1:
            out.append(_right("no difference claimed", method, not verdicts.isin(["better", "worse"]).any()))
            out.append(_right("no difference claimed at p99", method, verdicts[0.99] not in ("better", "worse")))
            out.append(_right("equal is tied at p50", method, verdicts[0.5] == "tied"))
        else:
            out += [_right(f"slower is worse at p{100 * q:g}", method, verdicts[q] == "worse") for q in (0.5, 0.99)]
            out.append(_right("slower is not better or tied", method, not verdicts.isin(["better", "tied"]).any()))
    return out


def _right(quantity: str, method: str, holds: bool) -> Outcome:
    return Outcome(quantity, method, float(holds), float(holds), 1.0)
