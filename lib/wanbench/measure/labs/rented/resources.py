"""
Tags of everything that runs make, and taking it down: list what carries a tag, delete it, list again until nothing is
left.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from wanbench.errors import LabError

from .client import CloudError

# Tags of every resource. wanbench uses these names for every cloud, even if a cloud needs another spelling.
CAMPAIGN, OWNER, EXPIRES, RUN = "wanbench:campaign", "wanbench:owner", "wanbench:expires", "wanbench:run"


@dataclass(frozen=True)
class Tags:
    """What the resources of one run carry; `expires_at` is when its hosts end themselves."""

    run: str
    campaign: str
    owner: str
    expires_at: datetime

    def values(self) -> dict[str, str]:
        """Tag to value, none longer than clouds allow."""
        expires = self.expires_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {RUN: self.run, CAMPAIGN: self.campaign[:256], OWNER: self.owner[:256], EXPIRES: expires}


def expiry(tags: Mapping[str, str]) -> datetime | None:
    """The time in the expiry tag; None if it is missing or unreadable."""
    try:
        return datetime.strptime(tags[EXPIRES], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except (KeyError, ValueError):
        return None


def is_expired(tags: Mapping[str, str], now: datetime) -> bool:
    """Whether the expiry tag lies in the past; one that is missing or unreadable does not."""
    expires = expiry(tags)
    return expires is not None and expires <= now


# Listings of clouds lag behind; also, a launch that was under way when its driver died may appear late. So nothing
# counts as gone before two listings this far apart are empty.
SETTLE_S = 5.0
# Maximum number of regions worked on concurrently: enough for all, as each has its own limit of requests.
CALLS_AT_ONCE = 40


@dataclass(frozen=True)
class Resource:
    """One thing that costs money or clutters an account; `region` is the cloud's own name."""

    kind: str
    id: str
    region: str
    state: str = ""
    tags: dict = field(default_factory=dict, compare=False)

    @property
    def run(self) -> str:
        """The id of the run that made it."""
        return self.tags.get(RUN, "")

    def __str__(self) -> str:
        return f"{self.kind} {self.id} in {self.region}{f' ({self.state})' if self.state else ''}"


class Resources(ABC):
    """
    What runs have made in one account of a `cloud` (as in the names of regions), whose usual name is `title`.

    After `timeout_s` everything in one region must be deleted: hosts take about a minute to end, and only then can the
    resources that they use be deleted. `poll_s` is the pause between a request to delete and the next listing. `place`
    is the only "region", where one list shows what is in all.
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
        """Whose it is; never shown, and written only as a hash. LabError if that cannot be found out."""

    @abstractmethod
    def now(self) -> datetime | None:
        """The time there, by which resources expire; None if that cannot be found out."""

    def regions(self) -> list[str]:
        """Everywhere that something may be, by the cloud's own names; LabError if that cannot be found out."""
        return [self.place]

    @abstractmethod
    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """List everything in a region that a run made; of all runs if None. LabError if any kind cannot be listed."""

    @abstractmethod
    def ask_to_delete(self, resource: Resource) -> None:
        """Ask for the end of one resource, and do not wait."""

    def delete(self, resource: Resource) -> str | None:
        """Ask for the end of one resource; returns the refusal, which often only means "not yet"."""
        try:
            self.ask_to_delete(resource)
        except CloudError as error:
            return None if error.is_gone else str(error)
        return None


def everywhere(work: Callable, items: Sequence, *, hurry: Callable[[], None] = lambda: None) -> list:
    """
    Do `work` for all items, several at a time; returns the results in order. The first error is raised once all have
    ended, and so is an interruption, however many follow it: nothing that is still being launched may appear after
    everything was taken down. `hurry` is called at the first interruption, and may make the work end sooner.
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
    Delete everything in these regions that `which` picks, of all runs or of one, and see that it is gone.

    Returns what remains, and the regions that could not be listed: what is not known is not gone. Empty if all is well.
    """
    left = everywhere(lambda region: _take_down_in(resources, region, which, run, settle_s), list(regions))
    return [text for texts in left for text in texts]


def uninterrupted(work: Callable, title: str):
    """The result of `work`, which goes on when somebody presses Ctrl-C; the interruption is raised afterwards."""
    notice = f"wanbench: what runs on {title} is being taken down; this takes a minute or more."
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        interruption = _to_its_end(lambda: wait([future]), notice)
    if interruption is not None and not future.result():
        raise interruption
    return future.result()


def tell(text: str) -> None:
    """
    Print to stderr for whoever still listens. Where the terminal was closed, or `tee` ended with the same Ctrl-C,
    printing fails: what must be taken down must not fail with it.
    """
    with suppress(OSError, ValueError):
        print(text, end="\n" * bool(text), file=sys.stderr, flush=True)


def _to_its_end(step: Callable, notice: str = "") -> BaseException | None:
    """Repeat a step until no interruption cuts it short; returns the last interruption."""
    interruption = None
    while True:
        try:
            step()
            return interruption
        except (KeyboardInterrupt, SystemExit) as raised:
            interruption = raised
            tell(notice)


def _take_down_in(resources, region, which, run, settle_s):
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
