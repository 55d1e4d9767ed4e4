"""Plan the trials of page 06: one factor varied at a time around a baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import ceil
from typing import Any

import numpy as np

from wanbench.checks import check_number, refusal
from wanbench.errors import ParameterError
from wanbench.measure.experiments import KafkaLoad, KafkaTrial
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import Trial
from wanbench.measure.plan.plan import alternating, shuffled

BUFFERS = "buffers"
DEFAULT, KERNEL = "default", "kernel"
LEFT_TO_KERNEL = -1  # With this size Kafka leaves buffers to the kernel, up to tcp_rmem and tcp_wmem.
PRODUCTS = {"bdp": 1, "2 bdp": 2}  # Levels of `buffers` in bandwidth-delay products.
BROKER_BUFFERS = ("socket.send.buffer.bytes", "socket.receive.buffer.bytes", "replica.socket.receive.buffer.bytes")
CLIENT_BUFFERS = ("send.buffer.bytes", "receive.buffer.bytes")
CONSUMER_DEFAULT = {"receive.buffer.bytes": 65_536}
"""Receive buffer in bytes that Kafka's consumer has by default; Kafka's performance tool would use 2 MiB."""
TOPIC_SETTINGS = ("min.insync.replicas",)
"""Factors that are settings of the topic; other factors with a dot in their name are settings of brokers."""

Links = Mapping[tuple[str, str], LinkSettings]


def one_at_a_time(
    baseline: KafkaTrial,
    factors: Mapping[str, Sequence[object]],
    *,
    replicates: int,
    links: Links | None = None,
    others: Mapping[str, KafkaTrial] | None = None,
    seed: int = 0,
) -> list[Trial]:
    """
    Plan trials of the baseline, and of every level of every factor with all else as in the baseline.

    Each replicate is one block with every setting once. Trials with equal broker settings form a group, because the
    cluster restarts between groups. The first block starts with the groups that take least time to set up; later blocks
    have a random order, or the reverse of the block before. The order within a group is random.

    Parameters
    ----------
    factors : mapping of sequences
        Maps each factor (see `at_level`) to its levels. A factor such as "acks, min.insync.replicas" varies several
        settings together; each of its levels is a list of their values. The baseline's own level adds no trial.
    links : mapping of (from, to) to LinkSettings, optional
        The links of the lab, needed for the factor "buffers".
    others : mapping of str to KafkaTrial, optional
        Further trials by name, which differ from the baseline in several factors.

    Returns
    -------
    list of Trial
        In the order of measuring; `setting` is "baseline", "<factor> <level>" or a name of `others`.

    Examples
    --------
    >>> trials = one_at_a_time(KafkaTrial(KafkaLoad()), {"acks": ["all", "1"]}, replicates=2)
    >>> sorted((trial.block, trial.setting) for trial in trials)
    [(1, 'acks 1'), (1, 'baseline'), (2, 'acks 1'), (2, 'baseline')]
    """
    check_number("replicates", replicates, 1, whole=True)
    if not isinstance(factors, Mapping):
        raise refusal("factors", factors, "a mapping of factors to their levels")
    settings = {"baseline": baseline, **(others or {})}
    for factor, levels in factors.items():
        if isinstance(levels, str) or not isinstance(levels, Sequence):
            raise refusal(f"factor {factor}", levels, "a list of levels")
        for level in levels:
            varied = at_level(baseline, factor, level, links=links)
            if varied != baseline:
                settings[_name(factor, level)] = varied
    groups: dict[tuple[object, ...], list[str]] = {}
    for name, trial in settings.items():
        groups.setdefault(trial.cluster_settings, []).append(name)
    rng = np.random.default_rng(seed)
    return [
        Trial(name, (settings[name],), block)
        for block, order in alternating(
            list(groups), replicates, rng, lambda one: settings[groups[one][0]].set_up_s(None)
        )
        for one in order
        for name in shuffled(groups[one], rng)
    ]


def at_level(trial: KafkaTrial, factor: str, level: object, *, links: Links | None = None) -> KafkaTrial:
    """
    Return a copy of `trial` with one factor changed to `level`.

    A factor is one of these:

    - a field of KafkaLoad or KafkaTrial
    - a setting of topics or brokers by Kafka's name, such as "min.insync.replicas"; level None is Kafka's default
    - several of these, separated by commas; `level` is then the list of their levels
    - "buffers", the socket buffers of brokers, replica fetchers and clients. Levels: "default" (Kafka's), "bdp" (the
      bandwidth-delay product of the longest RTT and the lowest rate among `links`), "2 bdp", "kernel" (autotuning).
    """
    names = _names(factor)
    if len(names) > 1:
        if isinstance(level, str) or not isinstance(level, Sequence) or len(level) != len(names):
            raise refusal(f"level of {factor}", level, f"a list of {len(names)}")
        for name, one in zip(names, level, strict=True):
            trial = at_level(trial, name, one, links=links)
        return trial
    if factor == BUFFERS:
        return _with_buffers(trial, level, links)
    if factor in TOPIC_SETTINGS:
        return replace(trial, load=_over(trial.load, "topic_settings", {factor: level}))
    if "." in factor:
        return _over(trial, "broker_settings", {factor: level})
    level = tuple(level) if isinstance(level, list) else level
    if factor in {field.name for field in fields(KafkaLoad)}:
        return replace(trial, load=replace(trial.load, **{factor: level}))
    if factor in {field.name for field in fields(KafkaTrial)}:
        return replace(trial, **{factor: level})
    allowed = "a field of KafkaLoad or KafkaTrial, or a setting of topics or brokers, as num.replica.fetchers is"
    raise refusal("factor", factor, f"{BUFFERS}, {allowed}")


def bandwidth_delay_bytes(links: Links) -> int:
    """
    Compute the bandwidth-delay product of the longest RTT and the lowest rate among links, in bytes.

    >>> from wanbench.measure.labs import matrix_links
    >>> bandwidth_delay_bytes(matrix_links({("a", "b"): 70, ("a", "c"): 40}, rate_bps=1e8))
    875000
    """
    rates = [link.rate_bps for link in links.values() if link.rate_bps]
    if not rates:
        raise ParameterError("buffers of a bandwidth-delay product need links that have a rate; none has.")
    back_ms = {(a, b): links[b, a].delay_ms if (b, a) in links else 0.0 for a, b in links}
    rtt_ms = max(link.delay_ms + back_ms[pair] for pair, link in links.items())
    return ceil(min(rates) / 8 * rtt_ms / 1000)


def _with_buffers(trial: KafkaTrial, level: Any, links: Links | None) -> KafkaTrial:
    if level not in (DEFAULT, KERNEL, *PRODUCTS):
        raise refusal(f"level of {BUFFERS}", level, ", ".join(map(repr, (DEFAULT, *PRODUCTS, KERNEL))))
    size = {DEFAULT: None, KERNEL: LEFT_TO_KERNEL}.get(level)
    if level in PRODUCTS:
        size = PRODUCTS[level] * bandwidth_delay_bytes(links or {})
    clients: dict[str, int | None] = dict.fromkeys(CLIENT_BUFFERS, size)
    load = _over(trial.load, "producer_settings", clients)
    load = _over(load, "consumer_settings", clients if size else {**clients, **CONSUMER_DEFAULT})
    return _over(replace(trial, load=load), "broker_settings", dict.fromkeys(BROKER_BUFFERS, size))


def _over(settled: Any, field: str, changes: Mapping[str, object]) -> Any:
    """Return a copy of a load or trial with `changes` to the settings in one field; None removes a setting."""
    changed = {**dict(getattr(settled, field) or ()), **changes}
    return replace(settled, **{field: {name: value for name, value in changed.items() if value is not None}})


def _names(factor: str) -> list[str]:
    return [name.strip() for name in factor.split(",")]


def _name(factor: str, level: Any) -> str:
    names = _names(factor)
    levels = level if len(names) > 1 else [level]
    return ", ".join(f"{name} {_text(one)}" for name, one in zip(names, levels, strict=True))


def _text(level: object) -> str:
    return "+".join(map(str, level)) if isinstance(level, list | tuple) else "none" if level is None else str(level)
