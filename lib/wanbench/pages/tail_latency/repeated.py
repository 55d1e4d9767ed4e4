"""
Repeated trials of one system at one load: a tail per trial.

Do not confuse two quantities. The *pooled* quantile is that of all records of all trials, with histograms merged:
tables of latencies state it, with its interval (`TailTrials.pooled`). The *trial's* quantile is that of one trial; its
geometric mean over trials is that of a typical trial. Comparisons use the latter: a pooled p99.9 often comes from the
one worst trial, so the other trials say nothing about its scatter. In simulation the jackknife of a pooled p99.9 finds
false differences in 5 to 16 of 100 comparisons, and Student's t on logarithms of trials' quantiles in 3 to 8.

A block holds trials measured close together, one of every system and step. Effects its trials share cancel in ratios
between systems.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd

from wanbench.checks import check_columns, check_kind, refusal
from wanbench.methods.tails.distribution import Parts, Tail

COLUMNS = ("block", "tail")


@dataclass(frozen=True, eq=False)
class TailTrials:
    """
    Repeated trials of one system at one load.

    Parameters
    ----------
    name : str
        The system, as sentences name it.
    tails : sequence of Tail
        The latencies of each trial, after warm-up.
    blocks : sequence, optional
        The block of each trial; by default the k-th trial is of block k.
    """

    name: str
    tails: tuple[Tail, ...]
    blocks: tuple[Hashable, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "tails", tuple(check_kind("tails", self.tails, Iterable)))
        object.__setattr__(self, "blocks", tuple(self.blocks) or tuple(range(len(self.tails))))
        if not self.tails or not all(isinstance(tail, Tail) and tail.n for tail in self.tails):
            raise refusal("tails", self.tails, "the Tail of each trial, one trial or more, each with records")
        if len(self.blocks) != len(self.tails):
            raise refusal("blocks", self.blocks, f"the block of each of the {len(self.tails)} trials")

    def __repr__(self) -> str:
        return f"{self.name}: {len(self.tails)} trials, {self.n:,} records"

    @property
    def n(self) -> int:
        """Number of records, including lost ones."""
        return sum(tail.n for tail in self.tails)

    @cached_property
    def pooled(self) -> Tail:
        """The records of all trials, with the trials as units: for quantiles with intervals."""
        return merged(self.tails, self.name)

    def by_trial(self, q: float) -> np.ndarray:
        """The quantile of each trial in ms."""
        return np.array([tail.quantile(q) for tail in self.tails])


def by_step(trials: pd.DataFrame, by: str = "rate_records_per_s", name: str = "the system") -> dict[float, TailTrials]:
    """
    The trials of each step, in ascending order.

    Parameters
    ----------
    trials : DataFrame
        One row per trial: the column `by`, `block`, and `tail` (a `Tail`).
    """
    check_columns("trials", trials, [by, *COLUMNS])
    return {
        step: TailTrials(name, tuple(part["tail"]), tuple(part.block)) for step, part in trials.groupby(by, sort=True)
    }


def merged(tails: Sequence[Tail], name: str) -> Tail:
    """The records of several trials as one distribution, whose runs are the trials."""
    values, place = np.unique(np.concatenate([tail.values_ms for tail in tails]), return_inverse=True)
    counts = np.bincount(place, weights=np.concatenate([tail.counts for tail in tails]), minlength=len(values))
    parts = [tail.parts if tail.parts is not None else _whole(tail) for tail in tails]
    return Tail(
        name,
        values,
        counts,
        sum(tail.n_lost for tail in tails),
        Parts(
            np.repeat(np.arange(len(parts)), [len(each.sizes) for each in parts]),
            np.concatenate([each.sizes for each in parts]),
            partial(_below_in_all, parts),
        ),
        max(tail.resolution_ms for tail in tails),
        tuple(run for tail in tails for run in tail.runs) if all(tail.runs for tail in tails) else (),
        sum(tail.n_cut for tail in tails),
        tuple(dict.fromkeys(text for tail in tails for text in tail.cautions)),
    )


def _whole(tail: Tail) -> Parts:
    """A trial with a known distribution only, as one stretch."""
    return Parts(np.zeros(1, dtype=int), np.array([tail.n], dtype=float), partial(_below, tail))


def _below(tail: Tail, x: float) -> np.ndarray:
    return np.array([tail.counts[tail.values_ms <= x].sum()])


def _below_in_all(parts: Sequence[Parts], x: float) -> np.ndarray:
    return np.concatenate([each.below(x) for each in parts])
