"""Taking down: what carries a tag is listed, deleted, and listed again until nothing is left."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from wanbench.errors import LabError

from .tags import RUN

TIMEOUT_S = 300.0
"""Hosts take about a minute to end; only then can the resources that they use be deleted."""
SETTLE_S = 5.0
"""
Listings of clouds lag behind; also, a launch that was under way when its driver died may appear late. So nothing counts
as gone before two listings this far apart are empty.
"""
POLL_S = 2.0
CALLS_AT_ONCE = 40
"""Maximum number of regions worked on concurrently: enough for all, as each has its own limit of requests."""


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
    What runs have made in one account.

    Attributes
    ----------
    cloud : str
        As in the names of regions.
    title : str
        The cloud's usual name.
    timeout_s : float
        Timeout for everything in one region to be deleted.
    poll_s : float
        Pause between a request to delete and the next listing.
    """

    cloud: str
    title: str
    timeout_s: float = TIMEOUT_S
    poll_s: float = POLL_S

    @abstractmethod
    def account(self) -> str:
        """Whose it is; never shown, and written only as a hash. LabError if that cannot be found out."""

    @abstractmethod
    def now(self) -> datetime | None:
        """The time there, by which resources expire; None if that cannot be found out."""

    @abstractmethod
    def regions(self) -> list[str]:
        """Everywhere that something may be, by the cloud's own names; LabError if that cannot be found out."""

    @abstractmethod
    def listed(self, region: str, run: str | None = None) -> list[Resource]:
        """Everything in a region that a run made; of all runs if None. LabError if any kind cannot be listed."""

    @abstractmethod
    def delete(self, each: Resource) -> str | None:
        """Ask for the end of one resource, and do not wait; the refusal, which often only means "not yet"."""


def everywhere(work: Callable, items: Sequence, *, hurry: Callable[[], None] = lambda: None) -> list:
    """
    Do `work` for all items, several at a time; returns the results in order. The first error is raised once
    all have ended.

    An interruption is raised only then, too, however many follow it: nothing that is still being launched
    may appear after everything was taken down. `hurry` is called at the first interruption, and may make the
    work end sooner.
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
    which: Callable[[Resource], bool],
    *,
    run: str | None = None,
    settle_s: float = SETTLE_S,
) -> list[str]:
    """
    Delete everything in these regions that `which` picks, and see that it is gone.

    Parameters
    ----------
    which : callable
        Whether a resource is to go.
    run : str, optional
        Only what this run made is looked at.

    Returns
    -------
    list of str
        What remains, and the regions that could not be listed: what is not known is not gone. Empty if all is well.
    """

    def work(region):
        try:
            return _take_down_in(resources, region, which, run, settle_s)
        except LabError as error:
            return [f"unknown in {region}: {error}"]

    return [text for found in everywhere(work, list(regions)) for text in found]


def uninterrupted(work: Callable, title: str):
    """The result of `work`, which goes on when somebody presses Ctrl-C; the interruption is raised afterwards."""
    told = f"wanbench: what runs on {title} is being taken down; this takes a minute or more."
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        interruption = _to_its_end(lambda: wait([future]), told)
    if interruption is not None and not future.result():
        raise interruption
    return future.result()


def tell(text: str) -> None:
    """
    Say something to whoever still listens. Where the terminal was closed, or `tee` ended with the same Ctrl-C, printing
    fails: what must be taken down must not fail with it.
    """
    with suppress(OSError, ValueError):
        print(text, end="\n" * bool(text), file=sys.stderr, flush=True)


def _to_its_end(step: Callable, told: str = "") -> BaseException | None:
    """Repeat a step until no interruption cuts it short; the last interruption. `told` is printed at each."""
    interruption = None
    while True:
        try:
            step()
            return interruption
        except (KeyboardInterrupt, SystemExit) as raised:
            interruption = raised
            tell(told)


def _take_down_in(resources, region, which, run, settle_s):
    deadline, empty_before = time.monotonic() + resources.timeout_s, False
    while True:
        try:
            found = [each for each in resources.listed(region, run) if which(each)]
        except LabError:
            if time.monotonic() > deadline:
                raise
            time.sleep(resources.poll_s)
            continue
        if not found and empty_before:
            return []
        empty_before = not found
        refusals = [refusal for each in found if (refusal := resources.delete(each))]
        if found and time.monotonic() > deadline:
            return [str(each) for each in found] + refusals
        time.sleep(settle_s if not found else min(settle_s, resources.poll_s))
