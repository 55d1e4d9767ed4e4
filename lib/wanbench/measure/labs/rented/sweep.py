"""Find the resources that runs left behind on a cloud, in all regions, and delete them if the user confirms."""

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from wanbench.errors import LabError
from wanbench.formatting import count
from wanbench.measure.labs import CLOUDS

from .leases import FREE, UNKNOWN, forget, free_leases, is_of, lease_state
from .resources import SETTLE_S, Resource, Resources, everywhere, expiry, is_expired, take_down

TO_GO = ("orphaned", "expired", "asked for")
CLOCKS_DIFFER = timedelta(minutes=5)  # A larger difference between clocks is reported.


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
    List the resources that runs of wanbench left in the account, and delete them if the user confirms (or at once, with
    `yes`).

    Expired resources are deleted, and orphaned ones: a process on this machine controlled their run, but has ended.
    Resources of runs on other machines stay until they expire, unless `everything` is set; they also stay if their
    expiry is unreadable, and the function then returns 1. Resources of runs that this machine controls now always stay.
    Leases of runs of other accounts are kept.

    Returns 0 if everything that had to be deleted has been deleted. Returns 1 otherwise, or if runs of another account
    may have left resources.
    """
    regions = resources.regions() if regions is None else list(regions)
    where = f"{len(regions)} regions" if len(regions) > 1 else "".join(regions)
    there, unknown = _everything(resources, regions)
    (ended, others), seen = _ended(resources), {resource.run for resource in there}

    # The time matters only for resources of other machines.
    now = _now(resources) if any(lease_state(resource.run) == UNKNOWN for resource in there) else None

    def state_of(resource: Resource) -> str:
        state = lease_state(resource.run)
        if state != UNKNOWN:
            return "orphaned" if state == FREE else "in use"
        if now is not None and is_expired(resource.tags, now):
            return "expired"
        # Only resources of runs that were listed to the user: others began during the sweep.
        if everything and resource.run in seen:
            return "asked for"
        return "in use" if expiry(resource.tags) else "unclear"

    if unclear := sum(state_of(resource) == "unclear" for resource in there):
        number = count(unclear, "resource")
        others.append(f"{number} without a readable expiry: `wanbench sweep --all` deletes them.")
    for resource in sorted(there, key=lambda it: (it.run, it.region, it.kind, it.id)):
        print(f"{state_of(resource):<9} {resource}, {resource.about}")
    for text in (*unknown, *others):
        print(text)
    to_go = [resource for resource in there if state_of(resource) in TO_GO]
    # If a run has just ended, it may have made resources that no listing shows yet.
    if not to_go and not ended:
        print(f"{resources.title}: nothing to delete in {where}.")
        return 1 if unknown or others else 0
    if to_go and not yes and not _confirmed(ask, len(to_go), resources.title):
        print("Nothing was deleted.")
        return 1
    left = take_down(resources, regions, lambda resource: state_of(resource) in TO_GO, settle_s=settle_s)
    for text in left:
        print(f"REMAINS on {resources.title}: {text}", file=sys.stderr)
    if not left:
        for lease in ended:
            forget(lease)
        print(f"{resources.title}: deleted {len(to_go)} resources; two further listings of {where} show none of them.")
    return 1 if left or others else 0


def sweep_clouds(clouds: Sequence[str] = (), **options: object) -> int:
    """
    Call `sweep`, with `options`, for these clouds; by default for all clouds whose account can be used from here.

    Returns 0 if everything that had to be deleted has been deleted. Returns 1 otherwise, if a cloud that had runs
    cannot be used, or if no cloud could be checked.
    """
    statuses = []
    for cloud in clouds or CLOUDS:
        try:
            package = CLOUDS[cloud]
            if not clouds and (reason := package.unusable()):
                ended = sum(len(free_leases(name)) for name in getattr(package, "LEASES", (cloud,)))
                and_left = f"; {ended} runs that ended on this machine may have left resources there" if ended else ""
                print(f"{cloud}: not checked, because {reason}{and_left}.")
                statuses += [1] if ended else []
            else:
                statuses.append(package.sweep(**options))
        except Exception as error:  # the other clouds must be swept all the same
            print(f"{cloud}: {error}", file=sys.stderr)
            statuses.append(1)
    if not statuses:
        print("No cloud could be checked.", file=sys.stderr)
    return max(statuses, default=1)


def _now(resources: Resources) -> datetime | None:
    """Return the cloud's time, and print a warning if it is unknown or differs from this machine's clock."""
    now = resources.now()
    if now is None:
        print(f"{resources.title} does not tell the time, so no resources of other machines count as expired.")
    elif abs(ahead := datetime.now(UTC) - now) > CLOCKS_DIFFER:
        way = "ahead of" if ahead > timedelta() else "behind"
        apart = f"{abs(ahead).total_seconds() / 60:.0f} minutes {way} that of {resources.title}"
        remedy = "Resources expire by the cloud's clock. Correct this machine's clock before you measure."
        print(f"This machine's clock is {apart}. {remedy}")
    return now


def _ended(resources: Resources) -> tuple[list[Path], list[str]]:
    """
    Return the leases of this account's ended runs, and a sentence about ended runs that may belong to another account.
    """
    ended = free_leases(resources.cloud)
    try:
        account = resources.account() if ended else ""
        own = [lease for lease in ended if is_of(lease, account)]
        why = "another account made them: sweep with its credentials to find what they left."
    except LabError as error:
        own, why = [], f"it is unknown whether this account made them: {error}"
    others = len(ended) - len(own)
    note = f"{resources.title}: {others} runs that ended on this machine are kept on record, because {why}"
    return own, [note] if others else []


def _everything(resources: Resources, regions: Iterable[str]) -> tuple[list[Resource], list[str]]:
    def look(region: str) -> tuple[list[Resource], list[str]]:
        try:
            return resources.listed(region), []
        except LabError as error:
            return [], [f"unknown   {region}: {error}"]

    answers = everywhere(look, regions)
    return [resource for listed, _ in answers for resource in listed], [text for _, texts in answers for text in texts]


def _confirmed(ask: Callable[[str], str], count: int, title: str) -> bool:
    try:
        return ask(f"Delete these {count} resources on {title}? [yes/no] ").strip().lower() in ("y", "yes")
    except (EOFError, RuntimeError):
        raise LabError("There is no terminal to ask; `wanbench sweep --yes` deletes without asking.") from None
