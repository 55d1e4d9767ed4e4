"""Plans whose tests differ in setting rather than in pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wanbench.checks import check_number
from wanbench.errors import ParameterError

from .plan import Plan, Test
from .selection import check_any_region


@dataclass(frozen=True)
class Trial:
    """
    One setting of one pair, to be measured once.

    Parameters
    ----------
    setting : str
        Its name; trials of one name are replicates.
    experiments : tuple
        What it does. The first one's `rtt_ms`, if it has one, is the round-trip time that is expected.
    block : int, optional
        Trials of one block are measured close together.
    """

    setting: str
    experiments: tuple
    block: int | None = None


def make_trials(
    trials: Sequence[Trial],
    *,
    from_region: str,
    to_region: str,
    more_regions: Sequence[str] = (),
    rate_bps: float | None = None,
    seed: int = 0,
) -> Plan:
    """
    A plan that measures trials one after another, in the given order.

    Parameters
    ----------
    from_region, to_region : str
        The pair: regions of the clients and of the servers. Raw files are named after them.
    more_regions : sequence of str
        Further regions of the lab, such as those of more brokers and clients.
    rate_bps : float, optional
        Throughput to expect.
    seed : int
        Kept with the plan; also the seed of the lab's loss and jitter.
    """
    for region in (from_region, to_region, *more_regions):
        check_any_region(region)
    trials = list(trials)
    if not trials:
        raise ParameterError("A plan needs at least one trial.")
    for trial in trials:
        if not isinstance(trial, Trial) or not trial.experiments or not trial.setting:
            raise ParameterError(f"{trial!r} is not a trial with a setting and at least one experiment.")
    rounds = []
    for ordinal, trial in enumerate(trials, start=1):
        name = f"{ordinal:04d}-{from_region}-{to_region}".replace(":", ".")
        rtt_ms = getattr(trial.experiments[0], "rtt_ms", None) or 0.0
        test = Test(name, ordinal, from_region, to_region, rtt_ms, trial.setting, trial.block, tuple(trial.experiments))
        rounds.append((test,))
    return Plan(
        tuple(rounds),
        experiments=(),
        seed=seed,
        lower_bound=len(rounds),
        batch=1,
        rate_bps=rate_bps,
        more_regions=tuple(more_regions),
    )


def in_blocks(settings: Mapping[str, object], *, replicates: int, seed: int = 0) -> list[Trial]:
    """
    Every setting once per block, in random order.

    Slow drift affects all settings of a block alike, so comparisons within blocks remove it.

    Parameters
    ----------
    settings : mapping of str to experiment
        For example a `KafkaTrial` for each size of broker.
    replicates : int
        Blocks.

    Examples
    --------
    >>> trials = in_blocks({"small": "a", "large": "b"}, replicates=3, seed=1)
    >>> [(trial.block, trial.setting) for trial in trials][:4]
    [(1, 'small'), (1, 'large'), (2, 'small'), (2, 'large')]
    """
    check_number("replicates", replicates, 1, whole=True)
    if not settings:
        raise ParameterError("settings is empty; allowed: at least one by name.")
    rng, names = np.random.default_rng(seed), list(settings)
    return [
        Trial(names[at], (settings[names[at]],), block)
        for block in range(1, replicates + 1)
        for at in rng.permutation(len(names))
    ]
