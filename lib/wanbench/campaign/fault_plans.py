"""Plans of fault episodes: several faults, and one setting varied at a time, repeated in random order."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from ..checks import check_choice, check_number, refusal
from ..plan import Trial


def fault_trials(
    baseline,
    faults: Sequence[Sequence[str]],
    *,
    factors: Mapping[str, Sequence] | None = None,
    repeats: int = 3,
    damage: Sequence[str] = (),
    seed: int = 0,
) -> list[Trial]:
    """
    Episodes of every fault at the baseline, of the first fault with one setting changed, and with planted damage.

    Each repeat is a block with every episode once, in random order; episodes whose brokers have the same settings stand
    together, for others restart them. What is to be damaged comes last, once, without a fault.

    Parameters
    ----------
    baseline : KafkaFault
        Its fault and place are replaced.
    faults : sequence of (fault, at)
        Such as [("cut", "eu"), ("kill", "controller")].
    factors : mapping
        Field of the experiment to its other levels. A mapping as level is laid over that of the baseline; None in it
        takes a setting away.
    damage : sequence of str
        See the experiment.

    Examples
    --------
    >>> from wanbench.experiments import KafkaFault
    >>> trials = fault_trials(KafkaFault("none"), [("cut", "a"), ("kill", "b")], factors={"acks": ["1"]}, repeats=2)
    >>> sorted(trial.setting for trial in trials if trial.block == 1)
    ['cut a', 'cut a, acks 1', 'kill b']
    """
    check_number("repeats", repeats, 1, whole=True)
    if not faults or any(len(each) != 2 for each in faults):
        raise refusal("faults", faults, "at least one pair of fault and place")
    episodes = {f"{fault} {at}".strip(): replace(baseline, fault=fault, at=at) for fault, at in faults}
    first, plain = next(iter(episodes.items()))
    for name, levels in (factors or {}).items():
        check_choice("factor", name, [field.name for field in fields(baseline)])
        for level in levels:
            label, value = f"{name} {level}", level
            if isinstance(level, Mapping):
                merged = dict(getattr(baseline, name) or {}) | dict(level)
                value = {key: each for key, each in merged.items() if each is not None}
                label = ", ".join(f"{key} {each}" for key, each in level.items() if each is not None)
            episodes[f"{first}, {label}"] = replace(plain, **{name: value})
    rng, trials = random.Random(seed), []
    for block in range(1, repeats + 1):
        groups = {}
        for setting in rng.sample(list(episodes), len(episodes)):
            brokers = repr(getattr(episodes[setting], "broker_settings", None))
            groups.setdefault(brokers, []).append(setting)
        order = [setting for group in groups.values() for setting in group]
        trials += [Trial(setting, (episodes[setting],), block) for setting in order]
    short = {"fault": "none", "at": "", "before_s": 2.0, "fault_s": 1.0}
    trials += [
        Trial(f"planted: {each}", (replace(baseline, damage=each, **short),), repeats + 1) for each in damage
    ]
    return trials
