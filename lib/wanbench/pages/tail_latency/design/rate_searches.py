"""A plan that searches, for each of several systems, the highest rate that meets a latency objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wanbench.measure.experiments import KafkaOpenLoop
from wanbench.measure.plan import Trial

from .kafka_rate_search import KafkaRateSearch
from .systems import System
from .systems_by_steps import systems_by_steps


def rate_searches(
    systems: Sequence[System],
    load: KafkaOpenLoop,
    objective_ms: float,
    rates: tuple[float, float],
    *,
    steps: int = 7,
    replicates: int = 1,
    seed: int = 0,
    **options,
) -> list[Trial]:
    """
    Searches for every system, in blocks as in `systems_by_steps`.

    Parameters
    ----------
    systems, load
        As in `systems_by_steps`.
    objective_ms, rates, steps
        As in `KafkaRateSearch`; `rates` holds the lowest and the highest rate.
    replicates : int
        Number of searches for each system; 0: none.
    **options
        `alongside`, `link`, `client_regions`, `gateway_bps` of `systems_by_steps`.

    Returns
    -------
    list of Trial
        `setting` is "<system>, search".

    Examples
    --------
    >>> pair = [{"name": "a"}, {"name": "b", "load": {"linger_ms": 0}}]
    >>> found = rate_searches(pair, KafkaOpenLoop(1000), 100.0, (500, 4000), steps=3)
    >>> sorted(trial.setting for trial in found)
    ['a, search', 'b, search']
    """
    if replicates == 0:
        return []
    one_step = {"rate_records_per_s": [load.rate_records_per_s]}
    planned = systems_by_steps(systems, load, one_step, replicates, seed, **options)
    lowest, highest = rates
    found = []
    for trial in planned:
        (one,) = trial.experiments
        search = KafkaRateSearch(one.load, objective_ms, lowest, highest, steps=steps)
        found.append(Trial(f"{one.system}, search", (replace(one, load=search),), trial.block))
    return found
