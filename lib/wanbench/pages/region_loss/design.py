"""Plan episodes with faults: several faults, and settings that differ from a baseline, repeated in random order."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from wanbench.checks import check_choice, check_number, refusal
from wanbench.measure.experiments import KafkaFault
from wanbench.measure.plan import Trial

GROUPS = ("topic_settings", "client_settings", "broker_settings")


def fault_trials(
    baseline: KafkaFault,
    faults: Sequence[Sequence[str]],
    *,
    factors: Sequence[Mapping[str, object]] = (),
    repeats: int = 3,
    damage: Sequence[str] = (),
    seed: int = 0,
) -> list[Trial]:
    """
    Plan episodes with every fault under the baseline settings, and with the first fault under other settings.

    Each repeat is a block that contains every episode once, in random order; episodes with equal broker settings are
    adjacent, to save restarts. Before them come episodes with `damage`: without a fault, but with recorded output that
    is damaged on purpose, to test `records`. They run once, and also warm up the brokers.

    Parameters
    ----------
    faults : sequence of (fault, at)
        For example [("cut", "eu"), ("kill", "controller")]. Each pair replaces `fault` and `at` of the baseline.
    factors : sequence of mappings
        Changes to the baseline; each mapping makes one setting. A key is a field of the experiment, or a setting of
        Kafka after its group, such as "topic_settings.min.insync.replicas". The value "" removes a setting.
    damage : sequence of str
        Values of the field `damage` of the experiment, one episode each.

    Examples
    --------
    >>> from wanbench.measure.experiments import KafkaFault
    >>> trials = fault_trials(KafkaFault("none"), [("cut", "a"), ("kill", "b")], factors=[{"acks": "1"}], repeats=2)
    >>> sorted(trial.setting for trial in trials if trial.block == 1)
    ['cut a', 'cut a, acks 1', 'kill b']
    """
    check_number("repeats", repeats, 1, whole=True)
    if not faults or any(len(each) != 2 for each in faults):
        raise refusal("faults", faults, "at least one pair of fault and place")
    episodes = {f"{fault} {at}".strip(): replace(baseline, fault=fault, at=at) for fault, at in faults}
    first, plain = next(iter(episodes.items()))
    for changes in factors:
        changed = _changed(plain, changes)
        shown = [f"{key.partition('.')[2] or key} {value}" for key, value in changes.items() if value != ""]
        episodes[f"{first}, {', '.join(shown)}"] = changed
    short = {"fault": "none", "at": "", "before_s": 2.0, "fault_s": 1.0}
    trials = [Trial(f"planted: {each}", (replace(baseline, damage=each, **short),), 0) for each in damage]
    rng = random.Random(seed)
    for block in range(1, repeats + 1):
        order = rng.sample(list(episodes), len(episodes))
        brokers = [repr(episodes[setting].broker_settings) for setting in order]
        order.sort(key=dict(zip(order, map(brokers.index, brokers), strict=True)).__getitem__)
        trials += [Trial(setting, (episodes[setting],), block) for setting in order]
    return trials


def _changed(episode: KafkaFault, changes: Mapping[str, object]) -> KafkaFault:
    for key, value in changes.items():
        group, _, name = key.partition(".")
        check_choice("factor", group, GROUPS if name else [field.name for field in fields(episode)])
        if name:
            kept = {each: old for each, old in dict(getattr(episode, group) or ()).items() if each != name}
            value, key = kept | ({name: value} if value != "" else {}), group
        episode = replace(episode, **{key: value})
    return episode
