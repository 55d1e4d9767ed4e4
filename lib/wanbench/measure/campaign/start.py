"""Measure a plan on a lab, or open the committed recording of the same plan: notebooks call `run`."""

import dataclasses
import fcntl
import inspect
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from wanbench.checks import check_choice, check_injected, check_number
from wanbench.errors import ParameterError
from wanbench.folders import data_folder, kafka_jars, samples_folder
from wanbench.measure.experiments import BrokerActions, BrokerMetrics, BrokerProcessors, KafkaFault, KafkaTrial
from wanbench.measure.experiments.base import Load
from wanbench.measure.experiments.kafka_fault import ON_BROKERS
from wanbench.measure.experiments.kafka_trial import region_and_number
from wanbench.measure.kafka.lab import KafkaLab
from wanbench.measure.kafka.placement import sizes_by_broker
from wanbench.measure.labs import LABS
from wanbench.measure.labs.base import Lab
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import Plan
from wanbench.runs import Run, find

from .execute import measure

SAMPLES = "samples"  # The value of `lab` that selects the recording under `data/samples` instead of a lab.

Links = Mapping[tuple[str, str], LinkSettings]
SHARE_VARIABLE = "WANBENCH_SHARE_MACHINE"
AGAIN_VARIABLE = "WANBENCH_AGAIN"
"""
Name of an environment variable. "fresh" starts new runs; "retry-failed" repeats the failed tests of finished runs;
"dry" ends the process before it measures. The options `--fresh`, `--retry-failed` and `--dry` of the command set it.
"""


def run(
    plan: Plan,
    links: Links,
    *,
    lab: str,
    campaign: str,
    parameters: dict[str, object] | None = None,
    sysctls: Mapping[str, str] | None = None,
    brokers: Sequence[str] = (),
    cluster: Mapping[str, Any] | None = None,
    external: Mapping[str, Mapping[str, Any]] | None = None,
    lab_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Run:
    """
    Return the run of a plan: measure it, resume an interrupted run, reuse a finished run, or open a recording.

    Parameters
    ----------
    links : {(from, to): LinkSettings}
        Settings of each direction, for a lab that emulates the network.
    lab : str
        A key of `wanbench.measure.labs.LABS`, such as "local" (network namespaces on this machine); or "samples", which
        opens the recording that is committed under `data/samples`.
    brokers : sequence of str
        The region of each broker of a Kafka cluster that the lab starts; by default there is no cluster.
    cluster : mapping, optional
        Further parameters of `wanbench.measure.kafka.Cluster`.
    external : mapping of str to mappings, optional
        Kafka clusters that exist already: names, and parameters of `wanbench.measure.kafka.ExternalCluster`. A trial
        names its cluster in the field `cluster`; if there is only one external cluster and `brokers` is empty, all
        trials use it. Parameters that end in `_from` name environment variables, which hold the secrets. The lab's
        hosts must reach the brokers.
    lab_options : mapping, optional
        Further options of this kind of lab (see its class), such as `inventory` for "ssh", `instance_type` and
        `budget_usd` for a cloud, or a mapping for each cloud in "aws+gcp".
    parameters, sysctls, **options
        `parameters`, `retries`, `fresh`, `retry_failed`, `watched` as in `measure`; `sysctls` as in `LocalLab`.

    Raises
    ------
    ParameterError
        If the lab is unknown or cannot run a trial, or if no recording has the tests, experiments and links of the
        plan.
    LabError
        If the lab cannot be opened, with the reason.
    """
    check_injected()
    check_choice("lab", lab, [*LABS, SAMPLES])
    if lab == SAMPLES:
        return recording(plan, campaign, links)
    cluster, external = cluster or {}, external or {}
    controllers = cluster.get("controllers", "combined")
    on_hosts = (brokers, () if controllers == "combined" else controllers)  # dedicated controllers share the hosts
    n_hosts = max([1, *(n for regions in on_hosts for n in Counter(regions).values())])
    pair = cluster.get("mirrored") or {}  # its clusters use further hosts
    n_hosts += max((n for name in ("source", "target") for n in Counter(pair.get(name)).values()), default=0)
    trials = [one for test in plan.tests for one in plan.experiments_of(test) if isinstance(one, KafkaTrial)]
    n_hosts = max([n_hosts, *(region_and_number(at)[1] + 1 for one in trials for at in one.client_regions or ())])
    own = {"hosts_per_region": n_hosts, "sysctls": sysctls, "seed": plan.seed}
    opened = _lab(lab, plan.regions, _within(links, plan), **own, **(lab_options or {}))
    again = os.environ.get(AGAIN_VARIABLE)
    options = {**{"fresh": again == "fresh", "retry_failed": again == "retry-failed"}, **options}
    check_trials(plan, opened, brokers, cluster, [*external, *(["mirrored"] if "mirrored" in cluster else [])])
    if again == "dry":
        estimate = getattr(opened, "estimate", None)
        print(plan, *([estimate(plan, campaign)[0]] if estimate else []), sep="\n")
        sys.exit()
    if brokers or external:
        opened = KafkaLab(opened, brokers, external=external, **cluster)
    with _one_at_a_time() if lab == "local" else nullcontext():
        return measure(plan, opened, data_folder=data_folder(), campaign=campaign, parameters=parameters, **options)


@contextmanager
def _one_at_a_time() -> Generator[None]:
    """Wait until no other run measures on this machine, because two runs at once would distort each other's results."""
    lock = None
    if not os.environ.get(SHARE_VARIABLE):
        with suppress(OSError):  # the file may be another user's
            lock = os.open(Path(tempfile.gettempdir(), "wanbench-measuring"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if lock is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                wait = f"waiting for its end ({SHARE_VARIABLE}=1 skips the wait)"
                print(f"Another run measures on this machine: {wait}.", file=sys.stderr, flush=True)
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _lab(kind: str, *arguments: Any, **options: Any) -> Lab:
    """Return the lab, not yet open; raise ParameterError if its kind does not have a given option, or needs another."""
    try:
        inspect.signature(LABS[kind]).bind(*arguments, **options)
    except TypeError as error:
        raise ParameterError(f"lab_options of lab {kind!r}: {error}.") from None
    return LABS[kind](*arguments, **options)


def recording(plan: Plan, campaign: str, links: Links) -> Run:
    """
    Return the newest finished run under `data/samples` that has the plan's tests and experiments, and these links.
    Raise ParameterError if there is none.
    """
    folder = samples_folder()
    runs = [run for run in find(folder, campaign) if run.finished]
    wanted = json.loads(json.dumps(plan.as_dict()))
    for run in reversed(runs):
        same = all(_is_asked_for(run.plan.get(key), wanted[key]) for key in ("tests", "experiments", "seed"))
        if same and _has_links(run, _within(links, plan)):
            return run
    there = f"{folder / 'raw' / campaign} (finished runs there: {', '.join(run.run_id for run in runs) or 'none'})"
    why = "can be replayed only with the parameters it was made with, which are those of the 'quick' preset"
    raise ParameterError(f"No recording of this plan under {there}. A recording {why}.")


# Settings that experiments had when samples were recorded, with the value that all samples have.
FORMER = {"transfer_bytes": None, "disk_bps": None, "producers_per_region": 1, "consumers_per_region": 1}
FORMER |= {"method": "cusum", "weight": 0.2}
# Settings that are newer than recordings, with the values that all recordings without them had.
NEWER = {"ip_version": 4, "share_groups": False, "rereads": False}


def _is_asked_for(recorded: object, wanted: object) -> bool:
    """
    Return whether recorded settings equal the wanted ones.

    A recorded setting that experiments no longer have must be as in `FORMER`; one that they did not have then must be
    wanted as in `NEWER`, or as None.
    """
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        wanted = {name: FORMER[name] for name in FORMER.keys() & recorded.keys()} | wanted
        same = all(name in wanted and _is_asked_for(recorded[name], wanted[name]) for name in recorded)
        return same and all(value == NEWER.get(name) for name, value in wanted.items() if name not in recorded)
    if isinstance(recorded, list) and isinstance(wanted, list):
        return len(recorded) == len(wanted) and all(map(_is_asked_for, recorded, wanted))
    return recorded == wanted


def _has_links(run: Run, links: Links) -> bool:
    """Return whether a run was made with these link settings; where `queue_bytes` is None, any queue size fits."""
    recorded = {(link.get("from_region"), link.get("to_region")): link for link in run.links()}
    return recorded.keys() == links.keys() and all(
        recorded[pair].get(name) == value
        for pair, settings in links.items()
        for name, value in json.loads(json.dumps(dataclasses.asdict(settings))).items()
        if (name, value) != ("queue_bytes", None)
    )


def _within(links: Links, plan: Plan) -> dict[tuple[str, str], LinkSettings]:
    wanted = set(plan.regions)
    return {pair: link for pair, link in links.items() if set(pair) <= wanted}


MIN_INSYNC = "min.insync.replicas"
FLUSH = "log.flush.interval.messages"
SYSCTLS = {"receive": "net.core.rmem_max", "send": "net.core.wmem_max"}  # Sysctls that limit socket buffers.


def check_trials(
    plan: Plan, lab: Lab, brokers: Sequence[str], cluster: Mapping[str, Any], external: Collection[str] = ()
) -> None:
    """
    Raise ParameterError if the lab (not yet open) or the cluster cannot run a trial; the message names the trial's
    setting.

    `brokers` are the regions of the brokers, `cluster` further parameters of the cluster, and `external` the names of
    external clusters.
    """
    for test in plan.tests:
        for experiment in plan.experiments_of(test):
            trial = KafkaTrial(experiment) if isinstance(experiment, Load) else experiment
            if isinstance(trial, KafkaTrial | KafkaFault):
                for objection in _objections(trial, lab, len(brokers), cluster, external):
                    raise ParameterError(f"trial {test.setting or test.id}{objection}")


def _objections(
    trial: KafkaTrial | KafkaFault, lab: Lab, brokers: int, cluster: Mapping[str, Any], external: Collection[str]
) -> Iterator[str]:
    """Yield the reasons why a trial cannot be measured; each completes a sentence that begins with the trial's name."""
    name, names = getattr(trial, "cluster", None), ", ".join(map(repr, external)) or "none is given"
    is_external = name is not None or not brokers
    if name is not None and name not in external:
        yield f" is on the cluster {name!r}; allowed: external clusters ({names}){' or None' if brokers else ''}."
    if name is None and not brokers and len(external) != 1:
        allowed = f"give brokers, or set cluster to one of the external clusters ({names})"
        yield f" names no cluster, and the lab starts none; allowed: {allowed}."
    if asked := is_external and _needs_own_cluster(trial):
        allowed = "settings of clients only, because wanbench does not run its brokers"
        yield f" sets {', '.join(asked)} on an external cluster; allowed: {allowed}."
    if isinstance(trial, KafkaFault):
        return
    load, can_set_links = trial.load, hasattr(lab, "set_link")
    for client in trial.client_regions or ():
        region, number = region_and_number(client)
        if region not in lab.hosts or (number and number >= len(lab.hosts[region])):
            yield f" has clients in {client}; allowed: regions of the lab: {', '.join(lab.hosts)}."
    settings = {} if is_external else {**(cluster.get("settings") or {}), **dict(trial.broker_settings or ())}
    if trial.kafka_version and not (jars := kafka_jars(trial.kafka_version)).is_dir():
        yield f" has kafka_version {trial.kafka_version!r}; `scripts/kafka-jars.sh VERSION` fetches one into {jars}."
    if not is_external:
        if load.replication > brokers:
            yield f" has a replication of {load.replication}; allowed: at most {brokers}, the number of brokers."
        # A topic's settings override the brokers' settings, where the default is 1.
        minimum = {**settings, **dict(load.topic_settings)}.get(MIN_INSYNC, 1)
        if not str(minimum).isdigit() or not 1 <= int(minimum) <= load.replication:
            why = "because otherwise no record with acks=all is ever acknowledged"
            yield f" has {MIN_INSYNC} {minimum}; allowed: 1 to {load.replication}, the replication, {why}."
    yield from _large_buffers(load, settings, lab.socket_buffer_limits() or {})
    if not is_external:
        for action in (one for part in trial.alongside if isinstance(part, BrokerActions) for one in part.actions):
            if action.node_id is not None and action.node_id > brokers:
                yield f": “{action}”; allowed: brokers 1 to {brokers}."
            if action.kind == "link" and not can_set_links:
                yield f": “{action}” needs a local lab, because links of a {lab.kind} lab cannot be changed."
            if action.kind == "disk" and FLUSH not in settings:
                yield f": “{action}” slows only writes that brokers wait for; set {FLUSH} of the brokers, such as to 1."
        if trial.broker_sizes is not None:
            sizes_by_broker(trial.broker_sizes, brokers)  # raises an error unless there is a size for each broker
    if trial.path is not None and trial.path not in lab.path_names:
        paths = ", ".join(lab.path_names) or "None, because there is only one path between hosts of this lab"
        yield f" has path {trial.path!r}; allowed: {paths}."
    if trial.path is not None and lab.kind == "ssh" and not is_external:
        yield f" has path {trial.path!r}; allowed: None, because brokers on hosts by SSH listen on one address."
    if trial.link is not None and trial.path is None and not can_set_links:
        yield f" has a link; allowed: None, because links of a {lab.kind} lab cannot be changed."
    if trial.gateway_bps and not hasattr(lab, "set_gateway"):
        allowed = f"None, because links of a {lab.kind} lab cannot share a gateway"
        yield f" has gateway_bps {trial.gateway_bps:g}; allowed: {allowed}."


def _needs_own_cluster(trial: KafkaTrial | KafkaFault) -> list[str]:
    if isinstance(trial, KafkaFault):
        fault = [f"the fault {trial.fault}"] if trial.fault in ON_BROKERS else []
        return (["broker_settings"] if trial.broker_settings else []) + fault
    asked = trial.restarts + ["broker_sizes"] * (trial.broker_sizes is not None)
    only_own = BrokerActions | BrokerMetrics | BrokerProcessors
    return asked + [part.name for part in trial.alongside if isinstance(part, only_own)]


def _large_buffers(load: Any, settings: Mapping[str, Any], limits: Mapping[str, int]) -> Iterator[str]:
    of = {"brokers": settings, "producers": dict(load.producer_settings), "consumers": dict(load.consumer_settings)}
    for whose, name, value in ((whose, *item) for whose, its in of.items() if limits for item in its.items()):
        sysctl = next((SYSCTLS[end] for end in SYSCTLS if name.endswith(f"{end}.buffer.bytes")), None)
        if sysctl is None:
            continue
        try:
            size = check_number(name, int(value), -1, whole=True)
        except ValueError:
            yield f": {name} of {whose} is {value!r}; allowed: bytes, or -1."
            continue
        if size > limits[sysctl]:
            most = f"at most {limits[sysctl]:,} bytes, the limit {sysctl} of this kernel and all its network namespaces"
            remedy = f"or -1, which lets the kernel choose. To raise the limit, run as root: sysctl -w {sysctl}={size}"
            yield f": {name} of {whose} is {size:,}; allowed: {most}; {remedy}."
