"""Estimates for the source's claims, under the names that `claims.tail_latency` uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from wanbench.formatting import count, number
from wanbench.methods.result import Estimate
from wanbench.methods.result.means import geometric_mean
from wanbench.methods.tails import quantile_intervals as order

from .side_by_side import SideBySide
from .trials import TailTrials

METHOD = "Student's t on the logarithms of trials' quantiles, combined within a block; geometric mean over blocks"
ASSUMPTION = "Blocks are independent and represent further ones"
CHOSEN = "the step was chosen from the same trials for its ratio, which inflates it"
FAR, MIDDLE = 0.999, 0.5
Term = tuple[TailTrials, float, int]


def evidence(by_rate: SideBySide | None = None, by_partitions: SideBySide | None = None) -> dict[str, Estimate]:
    """
    Every measured estimate that a claim refers to.

    The first system stands for the source's Apache Kafka and is the numerator of ratios. "Highest" throughput is the
    last step at which both systems have trials that count, whether or not they kept up.
    """
    found = {}
    for name, table in (("throughput", by_rate), ("partitions", by_partitions)):
        if table is None:
            continue
        if len(table.steps) > 1:
            found |= _growth(name, table)
        best = max(table.steps, key=lambda step: np.nan_to_num(step.ratio.estimate))
        largest = "largest_ratio" if name == "throughput" else "largest_partitions_ratio"
        found[largest] = _noted(best.ratio, CHOSEN if len(table.steps) > 1 else "")
    if by_rate is not None:
        found |= _far_out(by_rate)
    return {name: one for name, one in found.items() if np.isfinite(one.estimate)}


def _growth(name: str, table: SideBySide) -> dict[str, Estimate]:
    """How each system's percentile, and the ratio of both, grow along the steps."""
    q, p = table.q, order.name(table.q)
    (a, b), (a_last, b_last) = table.steps[0].tails, table.steps[-1].tails
    steps = f"{number(table.steps[-1].step)} {table.unit} over {number(table.steps[0].step)}"
    found = {
        f"{name}_growth": _combined([(a_last, q, 1), (a, q, -1)], f"{p} of {a.name}, {steps}"),
        f"other_{name}_growth": _combined([(b_last, q, 1), (b, q, -1)], f"{p} of {b.name}, {steps}"),
    }
    if name == "throughput":
        terms = [(a_last, q, 1), (b_last, q, -1), (a, q, -1), (b, q, 1)]
        found["ratio_growth"] = _combined(terms, f"ratio of both systems' {p}, {steps}")
        found["growth_ratio"] = _combined(terms, f"growth of {p} of {a.name} over that of {b.name}, {steps}")
        return found
    ordered = sorted(
        (step for step in table.steps if np.isfinite(step.ratio.estimate)), key=lambda step: step.ratio.estimate
    )
    if len(ordered) < 2:
        return found
    (a, b), (a_last, b_last) = ordered[0].tails, ordered[-1].tails
    steps = f"{number(ordered[-1].step)} {table.unit} over {number(ordered[0].step)}"
    found["ratio_partitions_growth"] = _noted(
        _combined([(a_last, q, 1), (b_last, q, -1), (a, q, -1), (b, q, 1)], f"ratio of both systems' {p}, {steps}"),
        CHOSEN,
    )
    return found


def _far_out(table: SideBySide) -> dict[str, Estimate]:
    """p99.9 against p50 at the last step, and the largest ratio of any percentile there."""
    a, b = table.steps[-1].tails
    far, middle = order.name(FAR), order.name(MIDDLE)
    at = f"at {number(table.steps[-1].step)} {table.unit}"
    ratios = [
        _combined([(a, q, 1), (b, q, -1)], f"{order.name(q)} of {a.name} over {b.name}, {at}")
        for q in (MIDDLE, 0.9, 0.99, FAR)
    ]
    return {
        "other_tail_growth": _combined([(b, FAR, 1), (b, MIDDLE, -1)], f"{far} over {middle} of {b.name}, {at}"),
        "tail_ratio_growth": _combined(
            [(a, FAR, 1), (b, FAR, -1), (a, MIDDLE, -1), (b, MIDDLE, 1)],
            f"ratio of both systems' {far} over that of their {middle}, {at}",
        ),
        "largest_tail_ratio": _noted(max(ratios, key=lambda one: np.nan_to_num(one.estimate)), CHOSEN),
    }


def _combined(terms: Sequence[Term], quantity: str, level: float = 0.95) -> Estimate:
    """A product of typical trials' quantiles, each to the power 1 or -1, over the blocks that have all of them."""
    logs = (
        pd.concat(
            [
                sign * pd.Series(np.log(trials.by_trial(q))).groupby(list(trials.blocks)).mean()
                for trials, q, sign in terms
            ],
            axis=1,
        )
        .replace([np.inf, -np.inf], np.nan)
        .sum(axis=1, skipna=False)
    )
    kept = logs[np.isfinite(logs)]
    out = len(logs) - len(kept)
    one = geometric_mean(
        np.exp(kept),
        level,
        unit_name="block",
        quantity=quantity,
        claim=f"{quantity if quantity.startswith('p') else quantity[0].upper() + quantity[1:]}, is {{}}",
        method=METHOD,
        assumption=ASSUMPTION,
        warnings=(f"{count(out, 'block')} left out: a quantile is that of a lost record, or a trial is missing",)
        if out
        else (),
    )
    return replace(one, basis=count(len(kept), "block"))


def _noted(one: Estimate, note: str) -> Estimate:
    return replace(one, warnings=(*one.warnings, note)) if note else one
