"""Plans whose tests differ in setting rather than in pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass

import numpy as np

from wanbench.checks import check_number
from wanbench.errors import ParameterError

from .pairs import check_any_region
from .plan import Plan, Test


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

    `from_region` and `to_region` are those of the clients and of the servers, after which raw files are named;
    `more_regions` are further regions of the lab, such as those of more brokers. `rate_bps` is the throughput to
    expect. `seed` is kept with the plan, and is also the seed of the lab's loss and jitter.
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


def shuffled(items: Sequence, rng: np.random.Generator) -> list:
    """The items in random order."""
    return [items[at] for at in rng.permutation(len(items))]


def check_keys(where: str, given: Iterable, allowed: Iterable[str] | type) -> None:
    """Refuse keys other than `allowed`, names or a dataclass whose fields they are; the error names `where`."""
    names, of = allowed, ""
    if is_dataclass(allowed):
        names, of = [field.name for field in fields(allowed)], f"fields of {allowed.__name__}: "
    if unknown := [str(key) for key in given if key not in names]:
        raise ParameterError(f"{where} has {', '.join(unknown)}; allowed: {of}{', '.join(names)}.")


def in_blocks(settings: Mapping[str, object], *, replicates: int, seed: int = 0) -> list[Trial]:
    """
    Every setting once per block, in random order: comparisons within blocks remove slow drift.

    Examples
    --------
    >>> trials = in_blocks({"small": "a", "large": "b"}, replicates=3, seed=1)
    >>> [(trial.block, trial.setting) for trial in trials][:4]
    [(1, 'small'), (1, 'large'), (2, 'small'), (2, 'large')]
    """
    check_number("replicates", replicates, 1, whole=True)
    if not settings:
        raise ParameterError("settings is empty; allowed: at least one by name.")
    rng = np.random.default_rng(seed)
    return [
        Trial(name, (settings[name],), block)
        for block in range(1, replicates + 1)
        for name in shuffled(list(settings), rng)
    ]
