"""Find links that were throttled because their burst credit was used up, and estimate the credit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count, quantity
from wanbench.methods.lab.utilisation import KEY, LINK, windows
from wanbench.methods.result import Estimate, Fields, RowsResult
from wanbench.methods.result.means import mean_of
from wanbench.methods.trials.rates import TrialRates

LEAST_WINDOWS = 4  # at each of the two rates, so that a slow or fast window is no rate; shorter bursts go unseen
FALL, SCATTER = 0.8, 0.05
"""
A link whose queue never empties carries exactly its rate: successive windows that end and begin with a queue then
differ by less than 2 %, and by more than 5 % if a load or the machine limits the link. If such a rate is at most 80 %
of an earlier one, the link's own rate fell.
"""
NUMBERS = ("burst_s", "before_bps", "after_bps", "credit_bytes")
METHOD = (
    "bytes above the later rate, mean over the links of a trial that slowed; Student's t over trials. Too small by up "
    "to what a link carries between two samples at the later rate, because the load may begin at any time between them"
)
ASSUMPTION = "A link's credit is full when the load begins, and nothing else lowers the rate of a full link"


@dataclass(frozen=True, repr=False)
class Credits(RowsResult):
    """
    The fall of the rate of each loaded link into a broker, a row per link and trial; NaN if the rate did not fall.

    before_bps, after_bps: The rate before and after it. credit_bytes: What the link carried above `after_bps`.
    burst_s: How long that takes at `before_bps`.
    """

    TITLE = "Fall of the rate of links into brokers"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        links = self.rows.dropna(subset="credit_bytes").groupby(["setting", *KEY], sort=False)
        values = links.credit_bytes.mean().groupby(level="setting", sort=False)
        about: Fields = {"unit": "bytes", "method": METHOD, "assumption": ASSUMPTION}
        texts = "burst credit of “{}”", "With “{}”, the burst credit of a link is {{}}"
        named = [(*(text.format(name) for text in texts), each) for name, each in values]
        return tuple(mean_of(each, 0.95, quantity=title, claim=claim, **about) for title, claim, each in named)

    @property
    def sentence(self) -> str:
        credits, parts = iter(self.estimates), []
        if self.rows.burst_s.isna().all():
            return f"On none of {count(len(self.rows), 'link')} did the rate fall as when burst credit is used up."
        for name, rows in self.rows.groupby("setting", sort=False):
            parts.append(f"“{name}” on {rows.burst_s.count()} of {count(len(rows), 'link')}")
            if rows.burst_s.any():
                (burst_s, before, after, _), one = rows[[*NUMBERS]].mean(), next(credits)
                parts[-1] += f" (after {quantity(burst_s, 's')} from {quantity(before, 'bit/s')} to "
                parts[-1] += f"{quantity(after, 'bit/s')}: a credit of {one.formatted}"
                parts[-1] += f", {one.formatted_level} {one.formatted_interval})" if one.formatted_interval else ")"
        return f"Throttled because burst credit was used up: {'; '.join(parts)}."


def burst_credits(rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> Credits:
    """
    Find a lasting fall of the rate of each link from clients to a broker, in each trial.

    Raises MissingDataError: no trial has samples of links.
    """
    samples, rows = tables.get("link_samples", pd.DataFrame()), []
    about = rates.rates[[*KEY, "setting", "from_region"]]
    seen = windows(samples).merge(about, on=KEY) if len(samples) else pd.DataFrame()
    if seen.empty:
        raise MissingDataError("the run has no samples of links, so burst credit cannot be seen.")
    seen = seen[seen.link_from == seen.from_region]
    most = seen.groupby(LINK).carried_bps.transform("max")
    loaded = seen[most > most.groupby([seen[name] for name in KEY]).transform("max") / 4]  # others have no partition
    for key, own in loaded.groupby([*LINK, "setting"], sort=False):
        rows.append(dict(zip([*LINK, "setting"], key, strict=True)) | fall(own))
    return Credits(pd.DataFrame(rows).sort_values(KEY, kind="stable", ignore_index=True))


def fall(link: pd.DataFrame) -> dict[str, float]:
    """
    Return the numbers of a row of `Credits` from the windows of a link (see `utilisation.windows`).

    >>> about = {"carried_bps": [40e6] * 8 + [20e6] + [10e6] * 11, "bytes_backlog": 9}
    >>> found = fall(pd.DataFrame(about | {"start_s": range(20), "end_s": range(1, 21)}))
    >>> [round(value, 1) for value in found.values()]
    [8.3, 40000000.0, 10000000.0, 31250000.0]
    """
    bps, queued = link.carried_bps.to_numpy(float), (link.bytes_backlog > 0).to_numpy()
    full = queued & np.roll(queued, 1)
    for first in range(len(bps) - LEAST_WINDOWS, 0, -1):
        last = slice(first, first + LEAST_WINDOWS)
        if full[last].all() and np.ptp(bps[last]) <= SCATTER * bps[last].mean():
            after = float(bps[last].mean())
            fast = np.flatnonzero(bps[:first] > after / FALL)
            if len(fast) >= LEAST_WINDOWS and after <= FALL * (before := np.median(bps[fast[0] : fast[-1] + 1])):
                burst = link[fast[0] : fast[-1] + 2]  # the change may lie within the window after the last fast one
                excess = ((burst.carried_bps - after).clip(lower=0) * (burst.end_s - burst.start_s)).sum()
                found = excess / (before - after), before, after, excess / 8
                return dict(zip(NUMBERS, map(float, found), strict=True))
            break
    return dict.fromkeys(NUMBERS, np.nan)
