"""Simulation: false alarms and detections of changes of level in a year of one pair, made by `pair_years`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wanbench.pages.over_time.levels import find_changes, medians_per_step

from .pair_years import SMALL_SHIFT, pair_year, score
from .simulation import MAIN, Outcome

DATASETS = 200
"""Pair-years; half of them have no change, as `pair_years.pair_year` says."""
SETTINGS = [{"measure": "rtt_ms"}, {"measure": "throughput_bps"}]
METHOD = "find_changes"
WITHIN_DAYS = 3
OTHER = "a change of another size found"


def trial(seed: int, measure: str) -> list[Outcome]:
    """
    Look for changes in the daily medians of a year.

    A statement, such as "at most 1 false alarm in a year", becomes an interval of length 0: at 1 if it is true, and at
    0 if not. Its truth is 1, so its coverage is the share of data sets in which the statement is true. A planted change
    is found if the nearest reported one is at most three days away; then the interval of its ratio is an outcome, too.
    All other reported changes are false alarms, as in `pair_years.score`.
    """
    tests, planted = pair_year(seed)
    shifts = [shift for _, shift in planted] if measure == "rtt_ms" else tests.attrs["throughput_shifts"]
    changes = find_changes(medians_per_step(tests.time_utc, tests[measure]))
    found = dict(zip(changes.rows.since[1:], changes.estimates, strict=True))
    counts = score(found, planted, WITHIN_DAYS)
    outcomes = [_held(f"at most {most} false alarms in a year", counts["false_alarms"] <= most) for most in (0, 1)]
    for (when, _), shift in zip(planted, shifts, strict=True):
        near = min(found, key=lambda since, when=when: abs(since - when), default=pd.Timestamp(0, tz="UTC"))
        is_found = abs(near - when) <= pd.Timedelta(days=WITHIN_DAYS)
        outcomes.append(_held("a change of 5 % found" if np.isclose(abs(shift), SMALL_SHIFT) else OTHER, is_found))
        if is_found:
            outcomes.append(Outcome("ratio of levels", MAIN, found[near].low, found[near].high, 1 + shift))
    return outcomes


def _held(quantity: str, holds: bool) -> Outcome:
    return Outcome(quantity, METHOD, float(holds), float(holds), 1.0)
