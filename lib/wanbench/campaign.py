"""
One call for a notebook: measure a plan on the lab that its parameters name, or replay the committed recording
of it. With `cli` and the notebooks the only place that may import both banks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from . import ingest
from .errors import ParameterError
from .labs import separate_pairs
from .labs.local import LocalLab
from .links import LinkSettings
from .measure import measure
from .places import data_folder
from .plan import Plan, make_plan
from .runs import Run, find

LABS = ("local", "samples")


def carry_out(
    plan: Plan,
    links: Mapping[tuple[str, str], LinkSettings],
    *,
    lab: str,
    campaign: str,
    parameters: dict | None = None,
    emulator: str = "auto",
    sysctls: Mapping[str, str] | None = None,
    **options,
) -> Run:
    """
    The run of a plan: measured now, resumed, found already measured, or replayed.

    Parameters
    ----------
    plan : Plan
    links : {(from, to): LinkSettings}
        Of the local lab.
    lab : "local" or "samples"
        Measure in network namespaces on this machine, or open the recording that is committed under `data/samples`.
    campaign : str
    parameters : dict, optional
        What the caller was asked to do, kept in the manifest.
    emulator, sysctls
        See `LocalLab`.
    **options
        `retries`, `progress`, `fresh` of `wanbench.measure.measure`.

    Raises
    ------
    ParameterError
        The lab is none of these, or no recording has the tests and experiments of this plan.
    LabError
        No local lab can run here; says why.
    """
    if lab == "samples":
        return recording(plan, campaign)
    if lab != "local":
        raise ParameterError(f"lab is {lab!r}; it must be one of {', '.join(LABS)}.")
    return measure(
        plan,
        LocalLab(plan.regions, _within(links, plan), emulator=emulator, sysctls=sysctls, seed=plan.seed),
        data_folder=data_folder(),
        campaign=campaign,
        parameters=parameters,
        **options,
    )


def recording(plan: Plan, campaign: str) -> Run:
    """The newest finished run under `data/samples` that has the tests and experiments of `plan`."""
    folder = data_folder() / "samples"
    runs = [run for run in find(folder, campaign) if run.finished]
    wanted = plan.as_dict()
    for run in reversed(runs):
        if all(run.plan[key] == wanted[key] for key in ("tests", "experiments", "seed")):
            return run
    there = ", ".join(run.run_id for run in runs) or "none"
    raise ParameterError(
        f"No recording of this plan under {folder / 'raw' / campaign} (finished runs there: {there}). A recording is "
        "replayed with the parameters it was made with; those of the preset 'quick' have one."
    )


def _within(links, plan):
    wanted = set(plan.regions)
    return {pair: link for pair, link in links.items() if set(pair) <= wanted}


def plan_for_links(
    links: Mapping[tuple[str, str], LinkSettings],
    experiments: list,
    *,
    batch: int | None = None,
    seed: int = 0,
) -> Plan:
    """
    A plan that tests every link once, in the direction that is named first: for calibrating a lab.

    Parameters
    ----------
    links : {(from, to): LinkSettings}
        Both directions, as `wanbench.labs.separate_pairs` gives them.
    experiments, batch, seed
        See `wanbench.plan.make_plan`.
    """
    forward = [pair for position, pair in enumerate(links) if pair[::-1] not in list(links)[:position]]
    return make_plan(
        pairs=forward,
        rtt_ms={pair: links[pair].delay_ms + links[pair[::-1]].delay_ms for pair in forward},
        rate_bps=max((link.rate_bps or 0 for link in links.values()), default=0) or None,
        experiments=experiments,
        batch=batch,
        seed=seed,
    )


def calibrate(
    campaign: str,
    settings: Sequence[LinkSettings],
    experiment,
    *,
    lab: str,
    batch: int | None = None,
    seed: int = 0,
    **options,
) -> tuple[Run, dict[str, pd.DataFrame]]:
    """
    Try link settings side by side with one experiment: the run and its tables.

    Parameters
    ----------
    campaign : str
    settings : sequence of LinkSettings
        Each gets a pair of invented regions of its own, the same both ways.
    experiment
        Of `wanbench.experiments`.
    lab, **options
        See `carry_out`.
    batch : int, optional
        Most links at the same time; 1 is one after another.
    """
    links = separate_pairs(settings)
    plan = plan_for_links(links, [experiment], batch=batch, seed=seed)
    run = carry_out(plan, links, lab=lab, campaign=campaign, **options)
    return run, ingest.read_run(run.folder)
