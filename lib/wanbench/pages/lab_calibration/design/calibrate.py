"""Calibrate a lab: try link settings concurrently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wanbench.measure.campaign import start
from wanbench.measure.links import LinkSettings
from wanbench.measure.plan import Plan, make_plan
from wanbench.runs import Run

Links = dict[tuple[str, str], LinkSettings]


def separate_pairs(settings: Sequence[LinkSettings]) -> Links:
    """
    Disjoint links: each setting joins two separate invented regions, symmetrically.

    Examples
    --------
    >>> sorted(separate_pairs([LinkSettings(10), LinkSettings(20)]))[:2]
    [('lab:a1', 'lab:b1'), ('lab:a2', 'lab:b2')]
    """
    links = {}
    for number, one in enumerate(settings, start=1):
        links[f"lab:a{number}", f"lab:b{number}"] = one
        links[f"lab:b{number}", f"lab:a{number}"] = one
    return links


def plan_for_links(
    links: Mapping[tuple[str, str], LinkSettings], experiments: list, *, batch: int | None = None, seed: int = 0
) -> Plan:
    """
    A plan that tests every link once, in the first-named direction, to calibrate a lab.

    Parameters
    ----------
    links : {(from, to): LinkSettings}
        Both directions, as returned by `separate_pairs`.
    experiments, batch, seed
        See `wanbench.measure.plan.make_plan`.
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
) -> Run:
    """
    Try link settings concurrently with one experiment.

    Parameters
    ----------
    campaign : str
    settings : sequence of LinkSettings
        Each gets a separate pair of invented regions, with the same settings in both directions.
    experiment
        An experiment of `wanbench.measure.experiments`.
    lab, **options
        See `wanbench.measure.campaign.run`.
    batch : int, optional
        Maximum number of concurrent links; 1: one after another.
    """
    links = separate_pairs(settings)
    plan = plan_for_links(links, [experiment], batch=batch, seed=seed)
    return start.run(plan, links, lab=lab, campaign=campaign, **options)
