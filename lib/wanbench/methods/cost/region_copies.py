"""Compute how often a message crosses between regions, where this was not measured."""

from __future__ import annotations

from dataclasses import dataclass

from wanbench.checks import check_flag, check_number


@dataclass(frozen=True)
class RegionCopies:
    """
    Average number of times a message crosses between regions.

    Attributes
    ----------
    produced, replicated, consumed : float
        Crossings on the way to the leader, from the leader to its followers, and to the consumers.
    """

    produced: float
    replicated: float
    consumed: float

    @property
    def total(self) -> float:
        """The sum of the three."""
        return self.produced + self.replicated + self.consumed


def region_copies(
    *, regions: int, replication: int, groups: int = 1, follower_fetching: bool = True, produced: bool = True
) -> RegionCopies:
    """
    Crossings of a message if clients, leaders and replicas are spread evenly over the regions.

    Replicas are spread over the regions (rack = region), clients too. All replicas lead equally often, so with n_i of R
    replicas in region i, R - sum(n_i^2) / R copies cross to followers.

    Parameters
    ----------
    groups : int
        Consumer groups, each of which reads every message once.
    follower_fetching : bool
        Consumers read from a replica in their own region if there is one (client.rack and a rack-aware selector).
    produced : bool
        Producers are in all regions; otherwise each is next to the leader that it writes to.

    Examples
    --------
    >>> copies = region_copies(regions=3, replication=3)
    >>> round(copies.produced, 3), copies.replicated, copies.consumed
    (0.667, 2.0, 0.0)
    >>> round(region_copies(regions=2, replication=3).replicated, 3)
    1.333
    """
    check_number("regions", regions, 1, whole=True)
    check_number("replication", replication, 1, whole=True)
    check_number("groups", groups, 0, whole=True)
    check_flag("follower_fetching", follower_fetching)
    check_flag("produced", produced)
    least, more = divmod(replication, regions)
    replicas = [least + 1] * more + [least] * (regions - more)
    elsewhere = (regions - 1) / regions
    without_replica = 1 - min(replication, regions) / regions
    return RegionCopies(
        produced=elsewhere if produced else 0.0,
        replicated=replication - sum(n**2 for n in replicas) / replication,
        consumed=groups * (without_replica if follower_fetching else elsewhere),
    )
