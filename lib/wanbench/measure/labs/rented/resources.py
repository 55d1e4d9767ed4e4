"""
Tag all resources that runs make, and delete tagged resources: list them, delete them, and list again until none is
left.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from wanbench.checks import T
from wanbench.errors import LabError

from .client import CloudError

R = TypeVar("R")
# Names of the tags of every resource; wanbench uses these also where a cloud needs another spelling.
CAMPAIGN, OWNER, EXPIRES, RUN = "wanbench:campaign", "wanbench:owner", "wanbench:expires", "wanbench:run"


@dataclass(frozen=True)
class Tags:
    """The tags of all resources of one run; `expires_at` is the time when its hosts end themselves."""

    run: str
    campaign: str
    owner: str
    expires_at: datetime

    def values(self) -> dict[str, str]:
        """Return the value of each tag, cut to the length that clouds allow."""
        expires = self.expires_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {RUN: self.run, CAMPAIGN: self.campaign[:256], OWNER: self.owner[:256], EXPIRES: expires}


def expiry(tags: Mapping[str, str]) -> datetime | None:
    """Return the time in the expiry tag; None if it is missing or unreadable."""
    try:
        return datetime.strptime(tags[EXPIRES], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except (KeyError, ValueError):
        return None


def is_expired(tags: Mapping[str, str], now: datetime) -> bool:
    """Return whether the time in the expiry tag has passed; false if the tag is missing or unreadable."""
    expires = expiry(tags)
    return expires is not None and expires <= now


# Resources count as deleted only when two listings this far apart are empty, because listings of clouds lag behind, and
# a launch that had begun when its driver died may appear late.
SETTLE_S = 5.0
# Maximum number of concurrent calls: enough for all regions, as each has its own limit of requests.
CALLS_AT_ONCE = 40


@dataclass(frozen=True)
class Resource:
    """A resource that a run made; `region` is the cloud's own name."""

    kind: str
    id: str
    region: str
    state: str = ""
    tags: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def run(self) -> str:
        """Return the id of the run that made the resource."""
        return self.tags.get(RUN, "")

    @property
    def about(self) -> str:
        """Return the tags in words: the campaign, the owner (whom to ask), and when the resource expires."""
        campaign, owner, expires = (self.tags.get(name, "?") for name in (CAMPAIGN, OWNER, EXPIRES))
        return f"campaign {campaign}, owner {owner}, expires {expires}"

    def __str__(self) -> str:
        return f"{self.kind} {self.id} in {self.region}{f' ({self.state})' if self.state else ''}"


class Resources(ABC):
    """
    The resources that runs have made in one account of a cloud.

    `cloud` is the cloud's name in the names of regions, and `title` its usual name. `timeout_s` is the timeout for
    deleting everything in one region: hosts take about a minute to end, and only then can the resources that they use
    be deleted. `poll_s` is the pause between a request to delete and the next listing. If one listing shows all
    regions, `place` is the name used in place of a region; otherwise None.
    """

    cloud: str
    title: str
    client_class: Callable[[], Any]
    timeout_s = 300.0
    poll_s = 2.0
    place: str | None = None

    def __init__(self, client: Any = None):
        self.client = client or self.client_class()

    @abstractmethod
    def account(self) -> str:
        """
        Return the account, which is never shown, and written only as a hash. Raise LabError if it cannot be found out.
        """

    @abstractmethod
    def now(self) -> datetime | None:
        """Return the cloud's time, by which resources expire; None if it cannot be found out."""

    def regions(self) -> list[str]:
        """
        Return all regions that may have resources (the cloud's names); raise LabError if they cannot be found out.
        """
        return [self.place] if self.place else []

    @abstractmethod
    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """
        List the resources of a run (of all runs if None) in a region. Raise LabError if any kind of resource cannot be
        listed.
        """

    @abstractmethod
    def ask_to_delete(self, resource: Resource) -> None:
        """Request the deletion of one resource, without waiting for it."""

    def delete(self, resource: Resource) -> str | None:
        """Request the deletion of one resource; return the cloud's refusal, if any, which often means "not yet"."""
        try:
            self.ask_to_delete(resource)
        except CloudError as error:
            return None if error.is_gone else str(error)
        return None


def everywhere(work: Callable[[T], R], items: Iterable[T], *, hurry: Callable[[], None] = lambda: None) -> list[R]:
    """
    Call `work` for all items, several at a time, and return the results in order.

    The first error is raised once all calls have ended. An interruption is raised then too; otherwise a host that is
    still being launched could appear after everything was deleted. `hurry` is called at the first interruption, and may
    make the calls end sooner.
    """
    pool = ThreadPoolExecutor(CALLS_AT_ONCE)
    try:
        futures = [pool.submit(work, item) for item in items]
        wait(futures)
    except (KeyboardInterrupt, SystemExit):
        hurry()
        raise
    finally:
        if again := _to_its_end(lambda: pool.shutdown(wait=True, cancel_futures=True)):
            raise again
    return [future.result() for future in futures]


def take_down(
    resources: Resources,
    regions: Sequence[str],
    which: Callable[[Resource], bool] = lambda resource: True,
    *,
    run: str | None = None,
    settle_s: float = SETTLE_S,
) -> list[str]:
    """
    Delete the resources of one run, or of all runs, that are in these regions and for which `which` returns True; check
    that they are gone.

    Return a text for each resource that remains and each region that could not be listed; the list is empty if all are
    gone.
    """

    def take_down_in(region: str) -> list[str]:
        deadline, was_empty = time.monotonic() + resources.timeout_s, False
        while True:
            try:
                left = [resource for resource in resources.listed(region, run) if which(resource)]
            except LabError as error:
                if time.monotonic() > deadline:
                    return [f"unknown in {region}: {error}"]
                time.sleep(resources.poll_s)
                continue
            if not left and was_empty:
                return []
            was_empty = not left
            refusals = [refusal for resource in left if (refusal := resources.delete(resource))]
            if left and time.monotonic() > deadline:
                return [*map(str, left), *refusals]
            time.sleep(min(settle_s, resources.poll_s) if left else settle_s)

    return [text for texts in everywhere(take_down_in, regions) for text in texts]


def uninterrupted(work: Callable[[], T], title: str) -> T:
    """Return the result of `work`, which Ctrl-C does not interrupt; the interruption is raised afterwards."""
    notice = f"wanbench: everything on {title} is being deleted; this takes a minute or more."
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        interruption = _to_its_end(lambda: wait([future]), notice)
    if interruption is not None and not future.result():
        raise interruption
    return future.result()


def tell(text: str) -> None:
    """
    Print to stderr, and ignore errors of printing: they must not stop the deletion of resources. They occur if the
    terminal was closed, or if `tee` ended with the same Ctrl-C.
    """
    with suppress(OSError, ValueError):
        print(text, end="\n" * bool(text), file=sys.stderr, flush=True)


def _to_its_end(step: Callable[[], object], notice: str = "") -> BaseException | None:
    """Repeat a step until it ends without an interruption; return the last interruption, if any."""
    interruption = None
    while True:
        try:
            step()
            return interruption
        except (KeyboardInterrupt, SystemExit) as raised:
            interruption = raised
            tell(notice)
