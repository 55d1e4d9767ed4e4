"""Trials that vary several factors jointly over their ranges, to fit a response surface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wanbench.designs import Range, space_filling
from wanbench.measure.experiments import KafkaTrial
from wanbench.measure.plan import Trial

from .one_at_a_time import Links, at_level

TOGETHER = "together"
"""The common setting name of these trials, although their levels differ."""


def together(
    baseline: KafkaTrial,
    factors: Mapping[str, Range | Sequence],
    runs: int,
    *,
    links: Links | None = None,
    seed: int = 0,
) -> list[Trial]:
    """
    The baseline with all these factors changed at once, in a space-filling design: see `space_filling`.

    They belong to no block, as they share no setting with one-factor trials.

    Parameters
    ----------
    factors : mapping
        A `Range` or a sequence of choices by factor: see `at_level`.
    runs : int
        Number of trials, in addition to those at the centre of all ranges; 0: no trials at all.
    links : mapping of (from, to) to LinkSettings, optional
        The links of the lab; `buffers` needs them.

    Examples
    --------
    >>> from wanbench.measure.experiments import KafkaLoad
    >>> space = {"batch_bytes": Range(16_384, 262_144, log=True, whole=True), "compression": ["none", "lz4"]}
    >>> len(together(KafkaTrial(KafkaLoad()), space, 8)), together(KafkaTrial(KafkaLoad()), space, 0)
    (12, [])
    """
    if runs == 0:
        return []
    names = ", ".join(factors)
    rows = space_filling(factors, runs, seed)[list(factors)].to_dict("records")
    of_row = [next(iter(row.values())) if len(row) == 1 else list(row.values()) for row in rows]
    return [Trial(TOGETHER, (at_level(baseline, names, levels, links=links),)) for levels in of_row]
