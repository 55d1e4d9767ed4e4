"""Check that a lab and a cluster can run a plan's trials, before either is opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from wanbench.checks import check_number
from wanbench.errors import ParameterError
from wanbench.measure.experiments import BrokerActions, BrokerMetrics, BrokerProcessors, KafkaFault, KafkaTrial
from wanbench.measure.experiments.base import Load
from wanbench.measure.experiments.broker_acts import NO_DISK_RATE
from wanbench.measure.experiments.kafka_faults import ON_BROKERS
from wanbench.measure.experiments.kafka_trial import region_and_number
from wanbench.measure.kafka.placement import sizes_by_broker
from wanbench.measure.labs.base import Lab
from wanbench.measure.plan import Plan

MIN_INSYNC = "min.insync.replicas"
RECEIVE, SEND = "net.core.rmem_max", "net.core.wmem_max"


def check_trials(
    plan: Plan, lab: Lab, brokers: Sequence[str], cluster: Mapping, external: Collection[str] = ()
) -> None:
    """
    ParameterError for the first trial that cannot be measured, with its setting.

    Rejected are: clients in an unknown region; more replicas than brokers; a `min.insync.replicas` above the replicas;
    socket buffers beyond the kernel's limit; gateways on a lab without them; an unknown cluster; features of the lab's
    own cluster on an external one; paths that the lab does not have, and links to be set where the network is real;
    actions on unknown brokers, or on links that the lab cannot change; sizes for only some brokers, and disk rates.

    Parameters
    ----------
    lab : Lab
        Not yet entered.
    brokers : sequence of str
        The region of each broker.
    cluster : mapping
        Further parameters of `wanbench.measure.kafka.Cluster`.
    external : collection of str
        Names of external clusters.
    """
    limits = lab.socket_buffer_limits()
    for test in plan.tests:
        for each in plan.experiments_of(test):
            trial = KafkaTrial(each) if isinstance(each, Load) else each
            where = f"trial {test.setting or test.id}"
            if isinstance(trial, KafkaTrial | KafkaFault) and _is_external(where, trial, brokers, external):
                _check_external(where, trial)
                if isinstance(trial, KafkaTrial):
                    _check_regions(where, trial, lab)
                    _check_buffers(where, trial.load, {}, limits)
            elif isinstance(trial, KafkaTrial):
                settings = {**(cluster.get("settings") or {}), **dict(trial.broker_settings or ())}
                _check_regions(where, trial, lab)
                _check_replicas(where, trial.load, len(brokers), settings)
                _check_buffers(where, trial.load, settings, limits)
                _check_actions(where, trial, lab, len(brokers))
                _check_sizes(where, trial, len(brokers))
            if isinstance(trial, KafkaTrial):
                _check_path(where, trial, lab)
            if isinstance(trial, KafkaTrial) and trial.gateway_bps and not hasattr(lab, "set_gateway"):
                raise ParameterError(
                    f"{where} has gateway_bps {trial.gateway_bps:g}, and links of a {lab.kind} lab cannot share a "
                    "gateway; allowed: None."
                )


def _is_external(where, trial, brokers, external):
    """Whether the trial runs on an external cluster; ParameterError without any cluster."""
    name, names = getattr(trial, "cluster", None), ", ".join(map(repr, external)) or "none is given"
    if name is not None and name not in external:
        raise ParameterError(
            f"{where} is on the cluster {name!r}; allowed: external clusters ({names}){' or None' if brokers else ''}."
        )
    if name is None and not brokers and len(external) != 1:
        raise ParameterError(
            f"{where} names no cluster, and the lab has none of its own; allowed: regions as brokers, or one of the "
            f"external clusters ({names}) named as cluster."
        )
    return name is not None or not brokers


def _check_external(where, trial):
    """Reject changes to an external cluster, and metrics that need its brokers' hosts."""
    asked = trial.restarts if isinstance(trial, KafkaTrial) else []
    if isinstance(trial, KafkaFault):
        asked = ["broker_settings"] * bool(trial.broker_settings)
        asked += [f"the fault {trial.fault}"] * (trial.fault in ON_BROKERS)
    else:
        asked += ["broker_sizes"] * (trial.broker_sizes is not None)
        only_own = BrokerActions | BrokerMetrics | BrokerProcessors
        asked += [each.name for each in trial.alongside if isinstance(each, only_own)]
    if asked:
        raise ParameterError(
            f"{where} asks an external cluster for {', '.join(asked)}; allowed: settings of "
            "clients only, because its brokers run elsewhere."
        )


def _check_path(where, trial, lab):
    if trial.path is not None and trial.path not in lab.path_names:
        paths = ", ".join(lab.path_names) or "None, as hosts of this lab have one path"
        raise ParameterError(f"{where} is over the path {trial.path!r}; allowed: {paths}.")
    if trial.link is not None and trial.path is None and not hasattr(lab, "set_link"):
        raise ParameterError(f"{where} sets a link, and links of a {lab.kind} lab cannot be changed.")


def _check_sizes(where, trial, brokers):
    if trial.broker_sizes is None:
        return
    sizes = sizes_by_broker(trial.broker_sizes, brokers)
    if any(size is not None and size.disk_bps is not None for size in sizes):
        raise ParameterError(f"{where} asks for a disk rate: {NO_DISK_RATE}; allowed: None.")


def _check_regions(where, trial, lab):
    for name in trial.client_regions or ():
        region, number = region_and_number(name)
        if region not in lab.hosts or (number and number >= len(lab.hosts[region])):
            raise ParameterError(f"{where} has clients in {name}; allowed: regions of the lab: {', '.join(lab.hosts)}.")


def _check_replicas(where, load, brokers, settings):
    if load.replication > brokers:
        raise ParameterError(
            f"{where} has a replication of {load.replication}; allowed: at most {brokers}, the number of brokers."
        )
    # The settings of a topic go over those of brokers, whose default is 1.
    wanted = {**settings, **dict(load.topic_settings)}.get(MIN_INSYNC, 1)
    if not str(wanted).isdigit() or not 1 <= int(wanted) <= load.replication:
        raise ParameterError(
            f"{where} has {MIN_INSYNC} {wanted}; allowed: 1 to {load.replication}, the "
            "replication, because otherwise no record with acks=all is ever acknowledged."
        )


def _check_actions(where, trial, lab, brokers):
    actions = [action for part in trial.alongside if isinstance(part, BrokerActions) for action in part.actions]
    for action in actions:
        if action.node_id is not None and action.node_id > brokers:
            raise ParameterError(f"{where}: “{action}”; allowed: brokers 1 to {brokers}.")
        if action.kind == "link" and not hasattr(lab, "set_link"):
            raise ParameterError(f"{where}: “{action}”, and links of a {lab.kind} lab cannot be changed.")


def _check_buffers(where, load, settings, limits):
    if limits is None:
        return
    of = {"brokers": settings, "producers": dict(load.producer_settings), "consumers": dict(load.consumer_settings)}
    for whose, its in of.items():
        for name, value in its.items():
            sysctl = _sysctl(name)
            if sysctl is None:
                continue
            try:
                size = check_number(name, int(value), -1, whole=True)
            except ValueError:
                raise ParameterError(f"{where}: {name} of {whose} is {value!r}; allowed: bytes, or -1.") from None
            if size > limits[sysctl]:
                raise ParameterError(
                    f"{where}: {name} of {whose} is {size:,}; allowed: at most {limits[sysctl]:,} bytes, this kernel's "
                    f"{sysctl}, which holds for all its network namespaces; or -1, which leaves it to the kernel. To "
                    f"allow more, as root: sysctl -w {sysctl}={size}."
                )


def _sysctl(name):
    """The sysctl that limits a Kafka setting; None if it is not a socket buffer."""
    if name.endswith("receive.buffer.bytes"):
        return RECEIVE
    return SEND if name.endswith("send.buffer.bytes") else None
