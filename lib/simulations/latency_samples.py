"""Turn arrays of latencies into the distributions that pages otherwise compute from histograms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from wanbench.checks import check_kind
from wanbench.errors import ParameterError
from wanbench.methods.sizes import check_sizes, numbers
from wanbench.methods.tails.distribution import SPELLS, Parts, Tail

STRETCHES = 1_000
"""Maximum number of stretches of a run; each is then short enough to separate bursts."""
MIN_IN_STRETCH = 10
"""Minimum number of records in a stretch; a shorter stretch could not contain a burst."""


def of_values(runs: Sequence[np.ndarray], name: str = "the sample", **more) -> Tail:
    """
    Return the distribution of latencies in ms, given by run in order of time; those of lost records are infinite.

    >>> tail = of_values([np.random.default_rng(0).permutation(1_000) + 1.0])
    >>> tail.quantile(0.99), tail.n, tail.interval(0.5)
    (990.0, 1000, (469.0, 532.0))
    """
    arrays = [numbers(f"a run of {name}", run) for run in check_kind("runs", runs, Iterable)]
    runs = tuple(array for array in arrays if len(array))
    together = np.concatenate(runs) if runs else np.empty(0)
    if np.isnan(together).any():
        raise ParameterError(f"{name} has a latency that is NaN; allowed: numbers, infinite if lost.")
    check_sizes(f"latency of {name}", together)
    values, counts = np.unique(together[np.isfinite(together)], return_counts=True)
    n_lost = int(np.isinf(together).sum())
    return Tail(name, values, counts, n_lost, parts_of(runs), **more)


def parts_of(runs: Sequence[np.ndarray]) -> Parts | None:
    """Split runs of values, each in order of time, into stretches; None if there are no runs."""
    if not runs:
        return None
    starts, run, at = [], [], 0
    for k, values in enumerate(runs):
        stretches = min(max(len(values) // MIN_IN_STRETCH, min(len(values), SPELLS)), STRETCHES)
        starts.append(at + np.linspace(0, len(values), stretches + 1).astype(int)[:-1])
        run.append(np.full(stretches, k))
        at += len(values)
    values, first = np.concatenate(runs), np.concatenate(starts)
    return Parts(np.concatenate(run), np.diff([*first, at]).astype(float), partial(_below, values, first))


def _below(values: np.ndarray, first: np.ndarray, x: float) -> np.ndarray:
    return np.add.reduceat((values <= x).astype(float), first)
