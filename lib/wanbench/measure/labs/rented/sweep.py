"""Finding what runs left behind on a cloud, in all regions, and deleting it on confirmation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path

from wanbench.errors import LabError
from wanbench.formatting import count

from .leases import FREE, HELD, UNKNOWN, forget, free_leases, is_of, lease_state
from .resources import SETTLE_S, Resource, Resources, everywhere, take_down
from .tags import CAMPAIGN, EXPIRES, OWNER, expiry, is_expired

CLOUDS = ("aws", "gcp", "azure")
"""Clouds that rent out hosts. Each is a package of `wanbench.measure.labs`, with functions `sweep` and `unusable`."""

CLOCKS_DIFFER = timedelta(minutes=5)
"""A larger difference between clocks is reported."""


def sweep(
    resources: Resources,
    *,
    yes: bool = False,
    everything: bool = False,
    ask: Callable[[str], str] = input,
    regions: Sequence[str] | None = None,
    settle_s: float = SETTLE_S,
) -> int:
    """
    List what runs of wanbench left in the account, and delete it once that is confirmed.

    This deletes expired resources, and orphaned ones: those of runs whose driver on this machine has ended.
    Resources that another machine may still be using stay until they expire, unless `everything` is set; without a
    readable expiry they stay, too, and the status is 1. Those that a driver on this machine holds always stay. Records
    of runs of another account are kept.

    Parameters
    ----------
    yes : bool
        Do not ask.
    regions : sequence of str, optional
        By default all that there are.

    Returns
    -------
    int
        0 if nothing is left that had to go, 1 otherwise, or if runs of another account may have left something.
    """
    regions = resources.regions() if regions is None else list(regions)
    where = f"{len(regions)} regions" if len(regions) > 1 else "".join(regions)
    there, unknown = _everything(resources, regions)
    (ended, others), seen = _ended(resources), {each.run for each in there}

    # The time decides only about resources that another machine may be using.
    now = _now(resources) if any(lease_state(each.run) == UNKNOWN for each in there) else None

    def why(each: Resource) -> str | None:
        """Why a resource is to go; None if it stays."""
        state = lease_state(each.run)
        if state == HELD:
            return None
        if state == FREE:
            return "orphaned"
        if now is not None and is_expired(each.tags, now):
            return "expired"
        # Not resources of runs that began during the sweep: nobody was shown these.
        return "asked for" if everything and each.run in seen else None

    unclear = [each for each in there if not why(each) and lease_state(each.run) == UNKNOWN and not expiry(each.tags)]
    if unclear:
        others.append(
            f"{count(len(unclear), 'resource')} without a readable expiry: `wanbench sweep --all` deletes them."
        )
    for each in sorted(there, key=lambda each: (each.run, each.region, each.kind, each.id)):
        tags = [each.tags.get(name, "?") for name in (CAMPAIGN, OWNER, EXPIRES)]
        state = why(each) or ("unclear" if each in unclear else "in use")
        print(f"{state:<9} {each}, campaign {tags[0]}, owner {tags[1]}, expires {tags[2]}")
    for text in (*unknown, *others):
        print(text)
    to_go = [each for each in there if why(each)]
    # A run that ended a moment ago may have asked for something that no listing shows yet.
    if not to_go and not ended:
        print(f"{resources.title}: nothing to delete in {where}.")
        return 1 if unknown or others else 0
    if to_go and not yes and not _confirmed(ask, len(to_go), resources.title):
        print("Nothing was deleted.")
        return 1
    left = take_down(resources, regions, lambda each: bool(why(each)), settle_s=settle_s)
    for text in left:
        print(f"REMAINS on {resources.title}: {text}", file=sys.stderr)
    if not left:
        for lease in ended:
            forget(lease)
        print(f"{resources.title}: deleted {len(to_go)} resources; two listings of {where} show none of them.")
    return 1 if left or others else 0


def sweep_clouds(clouds: Sequence[str] = (), **options) -> int:
    """
    Sweep one cloud after the other, with the options of `sweep`.

    Parameters
    ----------
    clouds : sequence of str
        Clouds of `CLOUDS`; if empty, all whose account can be queried here.

    Returns
    -------
    int
        0 if nothing is left that had to go; 1 otherwise, or if a cloud that runs were made on cannot be asked.
    """
    statuses = []
    for cloud in clouds or CLOUDS:
        room = import_module(f"...{cloud}", __name__)
        try:
            if not clouds and (reason := room.unusable()):
                ended = sum(len(free_leases(each)) for each in getattr(room, "LEASES", (cloud,)))
                and_left = f"; {ended} runs that ended here may have left something on it" if ended else ""
                print(f"{cloud}: not looked at, as {reason}{and_left}.")
                statuses += [1] if ended else []
            else:
                statuses.append(room.sweep(**options))
        except Exception as error:  # the other clouds must be swept all the same
            print(f"{cloud}: {error}", file=sys.stderr)
            statuses.append(1)
    if not statuses:
        print("No cloud could be asked.", file=sys.stderr)
    return max(statuses, default=1)


def _now(resources: Resources) -> datetime | None:
    """The time at the cloud; says so if this machine's clock has another, or nothing can expire."""
    now = resources.now()
    if now is None:
        print(f"{resources.title} does not tell the time, so nothing of other machines counts as expired.")
    elif abs(ahead := datetime.now(UTC) - now) > CLOCKS_DIFFER:
        way = "ahead of" if ahead > timedelta() else "behind"
        print(
            f"This machine's clock is {abs(ahead).total_seconds() / 60:.0f} minutes {way} that of {resources.title}, "
            "by which things expire. Set it right before you measure."
        )
    return now


def _ended(resources: Resources) -> tuple[list[Path], list[str]]:
    """Leases of this account's ended runs, and a sentence about those that are not known to be its own."""
    found = free_leases(resources.cloud)
    try:
        account = resources.account() if found else ""
    except LabError as error:
        why = f"it cannot be found out whether this account made them: {error}"
        return [], [f"{resources.title}: {len(found)} runs that ended here are left on record, as {why}"]
    own = [lease for lease in found if is_of(lease, account)]
    if not (others := len(found) - len(own)):
        return own, []
    why = "another account made them; what they left is found with that account's credentials."
    return own, [f"{resources.title}: {others} runs that ended here are left on record, as {why}"]


def _everything(resources, regions):
    def look(region):
        try:
            return resources.listed(region), []
        except LabError as error:
            return [], [f"unknown   {region}: {error}"]

    looked = everywhere(look, regions)
    return [each for found, _ in looked for each in found], [text for _, texts in looked for text in texts]


def _confirmed(ask, count, title):
    try:
        return ask(f"Delete these {count} resources on {title}? [yes/no] ").strip().lower() in ("y", "yes")
    except (EOFError, RuntimeError):
        raise LabError("Nobody can be asked here; `wanbench sweep --yes` deletes without asking.") from None
