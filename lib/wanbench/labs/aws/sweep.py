"""Finding what runs left behind, in all regions, and deleting it on confirmation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ...errors import LabError
from .clients import Aws, AwsError, session
from .leases import FREE, HELD, forget, free_leases, lease_state
from .preflight import enabled_regions, everywhere
from .tags import CAMPAIGN, EXPIRES, OWNER, is_expired
from .teardown import SETTLE_S, Resource, listed, take_down

HOME = "us-east-1"
"""Where the list of regions is asked for, if AWS_REGION or a profile names no region of another partition."""


def sweep(
    *,
    yes: bool = False,
    everything: bool = False,
    ask: Callable[[str], str] = input,
    aws: Aws | None = None,
    regions: Sequence[str] | None = None,
    settle_s: float = SETTLE_S,
) -> int:
    """
    List what runs of wanbench left in the account, and delete it once that is confirmed.

    To go is what has expired, and what is orphaned: of runs whose driver on this machine has ended. What another
    machine may still be using stays until it expires, unless `everything` is asked for; what a driver on this machine
    holds stays in any case.

    Parameters
    ----------
    yes : bool
        Do not ask.
    regions : sequence of str, optional
        By default all that are enabled.

    Returns
    -------
    int
        0 if nothing is left that had to go, 1 otherwise.
    """
    aws = aws or Aws()
    regions = enabled_regions(aws, _home()) if regions is None else list(regions)
    there, unknown = _everything(aws, regions)
    ended = free_leases()

    def why(each: Resource) -> str | None:
        """Why a resource is to go; None if it stays."""
        state = lease_state(each.run)
        if state == HELD:
            return None
        if state == FREE:
            return "orphaned"
        if is_expired(each.tags):
            return "expired"
        return "asked for" if everything else None

    for each in sorted(there, key=lambda each: (each.run, each.region, each.kind, each.id)):
        tags = [each.tags.get(name, "?") for name in (CAMPAIGN, OWNER, EXPIRES)]
        print(f"{why(each) or 'in use':<9} {each}, campaign {tags[0]}, owner {tags[1]}, expires {tags[2]}")
    for text in unknown:
        print(text)
    to_go = [each for each in there if why(each)]
    # A run that ended a moment ago may have asked for something that no listing shows yet.
    if not to_go and not ended:
        print(f"Nothing to delete in {len(regions)} regions.")
        return 1 if unknown else 0
    if to_go and not yes and not _confirmed(ask, len(to_go)):
        print("Nothing was deleted.")
        return 1
    left = take_down(aws, regions, lambda each: bool(why(each)), settle_s=settle_s)
    for text in left:
        print(f"REMAINS: {text}", file=sys.stderr)
    if not left:
        for lease in ended:
            forget(lease)
        print(f"Deleted {len(to_go)} resources; two listings of {len(regions)} regions show none of them.")
    return 1 if left else 0


def _everything(aws, regions):
    def look(region):
        try:
            return listed(aws, region), []
        except AwsError as error:
            return [], [f"unknown   {region}: {error}"]

    looked = everywhere(look, regions)
    return [each for found, _ in looked for each in found], [text for _, texts in looked for text in texts]


def _confirmed(ask, count):
    try:
        return ask(f"Delete these {count} resources? [yes/no] ").strip().lower() in ("y", "yes")
    except (EOFError, RuntimeError):
        raise LabError("Nobody can be asked here; `wanbench sweep --yes` deletes without asking.") from None


def _home() -> str:
    return session().region_name or HOME
