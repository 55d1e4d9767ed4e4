"""Trials of one steady load whose brokers are restarted in turn, slowed in turn, or all led by one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from wanbench.checks import check_number
from wanbench.errors import ParameterError
from wanbench.measure.experiments import BrokerAction, BrokerActions, KafkaOpenLoop, KafkaTrial
from wanbench.measure.plan import Trial

from .detection import Detection

TO_RESTORE_S = 1.0
"""Delay before a broker at full speed leads again: the command that ends its slowness has finished by then."""
_OF_ROLL = ("load", "broker_settings")
_OF_SLOWNESS = "take_out"


def rolls(load: KafkaOpenLoop, kinds: Mapping[str, Mapping], *, calm_s: float, **trial) -> dict[str, KafkaTrial]:
    """
    Trials that restart every broker in turn.

    Parameters
    ----------
    kinds : mapping of str to mapping
        Fields of a `BrokerAction`, such as {"kind": "restart"}; optionally "load" and "broker_settings", the
        differences from other rolls. A load with a longer warm-up begins its first restart later by as much.
    calm_s : float
        Time before each restart in which the cluster is complete; before the first it includes the warm-up.
    **trial
        Further fields of `KafkaTrial`.

    Examples
    --------
    >>> made = rolls(KafkaOpenLoop(100), {"kill": {"kind": "kill", "for_s": 2}}, calm_s=5)
    >>> print(made["kill"].alongside[0])
    every broker in turn: kill at 5 s for 2 s
    """
    made = {}
    for name, given in kinds.items():
        own = _changed(name, load, given.get("load", {}))
        action = _action(
            name,
            {key: value for key, value in given.items() if key not in _OF_ROLL},
            at_s=calm_s + own.warmup_s - load.warmup_s,
        )
        made[name] = KafkaTrial(
            own,
            broker_settings=given.get("broker_settings"),
            **trial | {"alongside": (*trial.get("alongside", ()), BrokerActions((action,), rolling=True, pause_s=0))},
        )
    return made


def slowed(
    load: KafkaOpenLoop,
    kinds: Mapping[str, Mapping],
    detection: Detection,
    *,
    brokers: int,
    first_s: float,
    slow_s: float,
    calm_s: float,
    **trial,
) -> dict[str, KafkaTrial]:
    """
    Trials that slow every broker in turn: for each kind one in which the detector only watches, and one, "<kind>,
    demoted", in which the named broker is demoted until it has recovered.

    Parameters
    ----------
    kinds : mapping of str to mapping
        Fields of a `BrokerAction`, such as {"kind": "slow", "share": 0.1}; optionally "take_out", for the detection in
        the trial with demotion. The name becomes the trial's `system`.
    detection : Detection
    first_s, slow_s, calm_s : float
        Start of the first slowness, duration of each, and pause before the next.

    Examples
    --------
    >>> times = {"first_s": 20, "slow_s": 10, "calm_s": 5}
    >>> made = slowed(KafkaOpenLoop(100), {"slow": {"kind": "slow"}}, Detection(), brokers=2, **times)
    >>> [(name, trial.load.duration_s) for name, trial in made.items()]
    [('slow', 45.0), ('slow, demoted', 45.0)]
    >>> print(made["slow, demoted"].alongside[1].actions[2])
    restore at 31 s
    """
    check_number("brokers", brokers, 1, 9, whole=True)
    made, turn_s = {}, slow_s + calm_s
    for name, given in kinds.items():
        slow, restored, given = [], [], dict(given)
        take_out = given.pop(_OF_SLOWNESS, None)
        for turn in range(brokers):
            at_s = first_s + turn * turn_s
            slow.append(_action(name, given, node_id=turn + 1, at_s=at_s, for_s=slow_s))
            restored.append(BrokerAction("restore", at_s=at_s + slow_s + TO_RESTORE_S))
        for label, demotes, actions in ((name, False, slow), (f"{name}, demoted", True, slow + restored)):
            watched = replace(detection, demote_on_alarm=demotes, take_out=take_out if demotes else None)
            made[label] = KafkaTrial(
                replace(load, duration_s=first_s + brokers * turn_s - load.warmup_s),
                system=name,
                **trial | {"alongside": (*trial.get("alongside", ()), watched, BrokerActions(tuple(actions)))},
            )
    return made


def leader_skew(load: KafkaOpenLoop, *, node_id: int = 1, first_s: float, skew_s: float, **trial) -> KafkaTrial:
    """
    A trial in which all leaders move to one broker, and are later spread again.

    Parameters
    ----------
    first_s, skew_s : float
        Start of the pile, and its duration; the load continues for the same time after it.
    """
    actions = BrokerAction("skew", node_id, first_s), BrokerAction("rebalance", at_s=first_s + skew_s)
    return KafkaTrial(
        replace(load, duration_s=first_s + 2 * skew_s - load.warmup_s),
        **trial | {"alongside": (*trial.get("alongside", ()), BrokerActions(actions))},
    )


def warmed_up(trials: Sequence[Trial], warm_up: Trial) -> list[Trial]:
    """
    The trials, with `warm_up` before the first and after each that leaves brokers newly started: a roll, or a trial
    with broker settings of its own. Such brokers are slow until their code is compiled.
    """
    made = [warm_up]
    for trial in trials:
        if _starts_brokers(made[-1]):
            made.append(warm_up)
        made.append(trial)
    return made


def _starts_brokers(trial: Trial) -> bool:
    return any(
        each.broker_settings or any(isinstance(one, BrokerActions) and one.rolling for one in each.alongside)
        for each in trial.experiments
    )


def _action(name: str, given: Mapping, **more) -> BrokerAction:
    allowed = [field.name for field in fields(BrokerAction) if field.name not in ("node_id", "at_s")]
    if unknown := [str(key) for key in given if key not in allowed]:
        raise ParameterError(f"“{name}” has {', '.join(unknown)}; allowed: {', '.join((*allowed, *_OF_ROLL))}.")
    if "kind" not in given:
        raise ParameterError(f"“{name}” has no kind; allowed: restart, kill, slow, link.")
    return BrokerAction(**{**given, **more})


def _changed(name: str, load: KafkaOpenLoop, changes: Mapping) -> KafkaOpenLoop:
    known = [field.name for field in fields(load)]
    if unknown := [str(key) for key in changes if key not in known]:
        raise ParameterError(f"“{name}” changes {', '.join(unknown)}; allowed: fields of the load: {', '.join(known)}.")
    return replace(load, **changes)
