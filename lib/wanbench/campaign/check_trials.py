"""Whether a lab and a cluster can do what the trials of a plan ask, before either is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..checks import check_number
from ..errors import ParameterError
from ..experiments import BrokerActions, KafkaTrial
from ..experiments.base import Load
from ..labs.base import Lab
from ..plan import Plan

MIN_INSYNC = "min.insync.replicas"
RECEIVE, SEND = "net.core.rmem_max", "net.core.wmem_max"


def check_trials(plan: Plan, lab: Lab, brokers: Sequence[str], cluster: Mapping) -> None:
    """
    ParameterError, with the trial's setting, for the first that cannot be measured.

    That is: clients in a region that the lab does not have; more replicas than brokers; a `min.insync.replicas` above
    the replicas; socket buffers beyond what the kernel gives; gateways on a lab that has none; actions on brokers that
    there are not, or on links of a lab that cannot change them.

    Parameters
    ----------
    lab : Lab
        Not yet entered.
    brokers : sequence of str
        The region of each.
    cluster : mapping
        Further parameters of `wanbench.kafka.Cluster`.
    """
    limits = lab.socket_buffer_limits()
    for test in plan.tests:
        for each in plan.experiments_of(test):
            trial = KafkaTrial(each) if isinstance(each, Load) else each
            if isinstance(trial, KafkaTrial):
                where = f"trial {test.setting or test.id}"
                settings = {**(cluster.get("settings") or {}), **dict(trial.broker_settings or ())}
                _check_regions(where, trial, lab)
                _check_replicas(where, trial.load, len(brokers), settings)
                _check_buffers(where, trial.load, settings, limits)
                _check_actions(where, trial, lab, len(brokers))
                if trial.gateway_bps is not None and not hasattr(lab, "set_gateway"):
                    raise ParameterError(
                        f"{where} has gateway_bps {trial.gateway_bps:g}, and links of a {lab.kind} lab cannot share a "
                        "gateway; allowed: None."
                    )


def _check_regions(where, trial, lab):
    if missing := [region for region in trial.client_regions or () if region not in lab.hosts]:
        raise ParameterError(
            f"{where} has clients in {', '.join(missing)}; allowed: regions of the lab: {', '.join(lab.hosts)}."
        )


def _check_replicas(where, load, brokers, settings):
    if load.replication > brokers:
        raise ParameterError(
            f"{where} has a replication of {load.replication}; allowed: at most {brokers}, the number of brokers."
        )
    # The settings of a topic go over those of brokers, whose default is 1.
    wanted = {**settings, **dict(load.topic_settings)}.get(MIN_INSYNC, 1)
    if not str(wanted).isdigit() or not 1 <= int(wanted) <= load.replication:
        raise ParameterError(
            f"{where} has {MIN_INSYNC} {wanted}; allowed: 1 to {load.replication}, the replication, for else no record "
            "with acks=all is ever acknowledged."
        )


def _check_actions(where, trial, lab, brokers):
    actions = [action for part in trial.beside if isinstance(part, BrokerActions) for action in part.actions]
    for action in actions:
        if action.node_id is not None and action.node_id > brokers:
            raise ParameterError(f"{where}: “{action}”; allowed: brokers 1 to {brokers}.")
        if action.kind == "link" and not hasattr(lab, "set_link"):
            raise ParameterError(f"{where}: “{action}”, and links of a {lab.kind} lab cannot be changed.")


def _check_buffers(where, load, settings, limits):
    if limits is None:
        return
    of = {
        "brokers": settings,
        "producers": dict(load.producer_settings),
        "consumers": dict(load.consumer_settings),
    }
    for whose, its in of.items():
        for name, value in its.items():
            sysctl = _sysctl(name)
            if sysctl is None:
                continue
            try:
                size = check_number(name, int(value), -1, whole=True)
            except ValueError:
                raise ParameterError(
                    f"{where}: {name} of {whose} is {value!r}; allowed: bytes, or -1."
                ) from None
            if size > limits[sysctl]:
                raise ParameterError(
                    f"{where}: {name} of {whose} is {size:,}; allowed: at most {limits[sysctl]:,} bytes, this kernel's "
                    f"{sysctl}, which holds for all its network namespaces; or -1, which leaves it to the kernel. To "
                    f"allow more, as root: sysctl -w {sysctl}={size}."
                )


def _sysctl(name):
    """The sysctl that bounds a setting of Kafka; None if it sets no socket's buffer."""
    if name.endswith("receive.buffer.bytes"):
        return RECEIVE
    return SEND if name.endswith("send.buffer.bytes") else None
