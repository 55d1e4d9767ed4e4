"""Check the placement of leaders and replicas: balanced over brokers, spread over regions, in sync."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from wanbench.checks import check_kind
from wanbench.errors import MissingDataError
from wanbench.formatting import count
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate, Fields, Result
from wanbench.methods.result.means import share_of
from wanbench.methods.trials.rates import TrialRates

METHOD = "exact binomial interval (Clopper & Pearson 1934)"
ASSUMPTION = "Topics are placed independently; each trial has one topic"


@dataclass(frozen=True, repr=False)
class Placement(Result):
    """
    Placement of leaders and replicas.

    balanced: Share of topics in which the numbers of partitions led by brokers differ by at most one.
    spread: Share of topics in which each partition has its replicas in as many regions as possible.
    in_sync: Share of topics that were spread in this way and had all replicas in sync at the end of the load.
    topics: One row per trial and topic: balanced, spread, all_in_sync, moved (partitions not led by their preferred
        replica).
    """

    balanced: Estimate
    spread: Estimate
    in_sync: Estimate
    topics: pd.DataFrame

    TITLE = "Placement of leaders and replicas"

    @property
    def sentence(self) -> str:
        moved = int((self.topics.moved > 0).sum())
        shares = " ".join(estimate.sentence for estimate in self.estimates)
        return f"{shares} Topics in which a partition was not led by its preferred replica: {moved}."


def placement(rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> Placement:
    """
    Check for every topic of every trial whether leaders are balanced over brokers, and replicas spread and in sync.

    Raises MissingDataError: the run has no table placements.
    """
    check_kind("rates", rates, TrialRates)
    rows = check_kind("tables", tables, Mapping).get("placements")
    rows = rows if rows is None or rows.empty else rates.part(rows)
    if rows is None or rows.empty:
        raise MissingDataError("the run has no placement of replicas.")
    regions, topics = rows.region.nunique(), []
    for key, part in rows.groupby([*KEY, "topic"], sort=False):
        leaders = part[part.leads].groupby("broker").size().reindex(rows.broker.unique(), fill_value=0)
        placed = part.groupby("partition").agg(replicas=("broker", "size"), regions=("region", "nunique"))
        topics.append(
            dict(zip([*KEY, "topic"], key, strict=True))
            | {"balanced": leaders.max() - leaders.min() <= 1}
            | {"spread": bool((placed.regions == placed.replicas.clip(upper=regions)).all())}
            | {"all_in_sync": bool(part.in_sync.all()), "moved": int((part.leads & (part.replica > 0)).sum())}
        )
    result = pd.DataFrame(topics)
    spread = "In {} of topics every partition had its replicas in as many regions as possible"
    synced = "In {} of topics replicas were in as many regions as possible, and all in sync at the end of the load"
    shares = {
        "balanced topics": (
            result.balanced,
            "In {} of topics the numbers of partitions that brokers led differed by at most one",
        ),
        "topics spread over regions": (result.spread, spread),
        "topics in sync in all regions": (result.spread & result.all_in_sync, synced),
    }
    about: Fields = {"basis": count(len(result), "topic"), "method": METHOD, "assumption": ASSUMPTION}
    estimates = [
        share_of(int(flags.sum()), len(flags), quantity=quantity, claim=claim, **about)
        for quantity, (flags, claim) in shares.items()
    ]
    return Placement(estimates[0], estimates[1], estimates[2], result)
