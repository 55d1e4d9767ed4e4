"""One call for a notebook: measure a plan on the lab that its parameters name, or replay its committed recording."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence

from wanbench.checks import check_choice
from wanbench.errors import ParameterError
from wanbench.folders import data_folder, samples_folder
from wanbench.measure.kafka.lab import KafkaLab
from wanbench.measure.labs import LABS
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import Plan
from wanbench.runs import Run, find

from .check_trials import check_trials
from .execute import measure

SAMPLES = "samples"
"""Name that selects the recording committed under `data/samples` instead of a lab."""

AGAIN_VARIABLE = "WANBENCH_AGAIN"
"""
An environment variable: "fresh" measures new runs, "retry-failed" the failed tests of finished ones. `wanbench report
--fresh` and `--retry-failed` set it.
"""


def run(
    plan: Plan,
    links: Mapping[tuple[str, str], LinkSettings],
    *,
    lab: str,
    campaign: str,
    parameters: dict | None = None,
    sysctls: Mapping[str, str] | None = None,
    brokers: Sequence[str] = (),
    cluster: Mapping | None = None,
    external: Mapping[str, Mapping] | None = None,
    lab_options: Mapping | None = None,
    **options,
) -> Run:
    """
    Run a plan: measure, resume, reuse a finished run, or replay.

    Parameters
    ----------
    plan : Plan
    links : {(from, to): LinkSettings}
        Requested settings of each direction, if the lab emulates the network.
    lab : str
        One of `wanbench.measure.labs.LABS`, such as "local" (network namespaces on this machine); or "samples": open the
        recording that is committed under `data/samples`.
    campaign : str
    parameters : dict, optional
        Parameters of the caller, stored in the manifest.
    sysctls
        See `LocalLab`.
    brokers : sequence of str
        Regions of the brokers of a Kafka cluster on the lab; none by default.
    cluster : mapping, optional
        Further parameters of `wanbench.measure.kafka.Cluster`.
    external : mapping of str to mappings, optional
        Parameters of `wanbench.measure.kafka.ExternalCluster` by the cluster's name, for trials that name it as `cluster`;
        without `brokers`, a single external cluster is for all trials. Secrets are in environment variables, which
        parameters ending in `_from` name; other values, such as `bootstrap`, are in the manifest if `parameters` has
        them. The lab's hosts must reach its brokers: hosts of a local lab reach nothing outside it.
    lab_options : mapping, optional
        Further options of this kind of lab, such as the `inventory` of "ssh", or `instance_type` and `budget_usd` of
        "aws", "gcp" and "azure", or a mapping for each cloud of "aws+gcp"; see its class.
    **options
        `retries`, `progress`, `fresh`, `retry_failed`, `watched` of `measure`.

    Raises
    ------
    ParameterError
        The lab is unknown, or cannot do what a trial asks; or no recording has the tests, experiments and links of this
        plan.
    LabError
        No local lab can run here; says why.
    """
    check_choice("lab", lab, [*LABS, SAMPLES])
    if lab == SAMPLES:
        return recording(plan, campaign, links)
    opened = _lab(
        lab,
        plan.regions,
        _within(links, plan),
        hosts_per_region=_most_in_a_region(brokers, (cluster or {}).get("controllers", "combined")),
        sysctls=sysctls,
        seed=plan.seed,
        **(lab_options or {}),
    )
    again = os.environ.get(AGAIN_VARIABLE)
    options = {"fresh": again == "fresh", "retry_failed": again == "retry-failed"} | options
    has_kafka = bool(brokers or external)
    check_trials(plan, opened, brokers, cluster or {}, external or {})
    return measure(
        plan,
        KafkaLab(opened, brokers, external=external, **(cluster or {})) if has_kafka else opened,
        data_folder=data_folder(),
        campaign=campaign,
        parameters=parameters,
        **options,
    )


def _lab(kind, *arguments, **options):
    """The lab, not yet open; ParameterError for an option that this kind of lab does not accept, or lacks."""
    try:
        inspect.signature(LABS[kind]).bind(*arguments, **options)
    except TypeError as error:
        raise ParameterError(f"lab_options of lab {kind!r}: {error}.") from None
    return LABS[kind](*arguments, **options)


def recording(plan: Plan, campaign: str, links: Mapping[tuple[str, str], LinkSettings]) -> Run:
    """The newest finished run under `data/samples` with the tests and experiments of `plan`, and its links."""
    folder = samples_folder()
    runs = [run for run in find(folder, campaign) if run.finished]
    wanted = json.loads(json.dumps(plan.as_dict()))
    for run in reversed(runs):
        same = all(_is_asked_for(run.plan.get(key), wanted[key]) for key in ("tests", "experiments", "seed"))
        if same and _has_links(run, _within(links, plan)):
            return run
    there = ", ".join(run.run_id for run in runs) or "none"
    raise ParameterError(
        f"No recording of this plan under {folder / 'raw' / campaign} (finished runs there: {there}). A recording is "
        "replayed with the parameters it was made with: those of the preset 'quick'."
    )


def _is_asked_for(recorded, wanted):
    """Whether a recording has these settings; a setting newer than the recording must be None."""
    if isinstance(recorded, dict) and isinstance(wanted, dict):
        known = all(name in wanted and _is_asked_for(recorded[name], wanted[name]) for name in recorded)
        return known and all(value is None for name, value in wanted.items() if name not in recorded)
    if isinstance(recorded, list) and isinstance(wanted, list):
        return len(recorded) == len(wanted) and all(map(_is_asked_for, recorded, wanted))
    return recorded == wanted


def _has_links(run, links):
    """Whether the run was made with these link settings; an unspecified queue may have any size."""
    recorded = {(link.get("from_region"), link.get("to_region")): link for link in run.links()}
    return recorded.keys() == links.keys() and all(
        recorded[pair].get(name) == value
        for pair, settings in links.items()
        for name, value in dataclasses.asdict(settings).items()
        if (name, value) != ("queue_bytes", None)
    )


def _most_in_a_region(brokers, controllers):
    """Hosts that the busiest region needs; dedicated controllers share the brokers' hosts."""
    apart = () if controllers == "combined" else controllers
    return max([1, *Counter(brokers).values(), *Counter(apart).values()])


def _within(links, plan):
    wanted = set(plan.regions)
    return {pair: link for pair, link in links.items() if set(pair) <= wanted}
