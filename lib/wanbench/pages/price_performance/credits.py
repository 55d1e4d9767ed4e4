"""Find links that were throttled because their burst credit was used up, and estimate the credit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count, quantity
from wanbench.methods.lab.utilisation import KEY, LINK, windows
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import mean_of
from wanbench.methods.trials.rates import TrialRates

LEAST_WINDOWS = 3  # at each of the two rates, so that a slow or fast window is no rate
FALL = 0.8
"""
A link whose queue is not empty carries its rate. If the later rate, with a queue, is at most this share of the earlier
one, the link's own rate fell: the mean over windows of a full link varies by less than 5 %.
"""
NUMBERS = ("burst_s", "before_bps", "after_bps", "credit_bytes")
METHOD = "bytes above the later rate, which is the mean of the last windows with a queue; Student's t over trials"
ASSUMPTION = "All brokers of a trial have the same credit, full at the start, and use it up at the same time"


@dataclass(frozen=True, repr=False)
class Credits(RowsResult):
    """
    The fall of the rate of links into brokers, one row per trial; its numbers are NaN if the rate did not fall.

    before_bps, after_bps: Rate of a link before and after it. credit_bytes: What a link carried above `after_bps`.
    burst_s: How long that takes at `before_bps`.
    """

    TITLE = "Fall of the rate into a broker, by trial"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        values = self.rows.dropna(subset="credit_bytes").groupby("setting", sort=False).credit_bytes
        about: dict = {"unit": "bytes", "method": METHOD, "assumption": ASSUMPTION}
        texts = "burst credit of “{}”", "With “{}”, the burst credit of a link is {{}}"
        named = [(*(text.format(name) for text in texts), each) for name, each in values]
        return tuple(mean_of(each, 0.95, quantity=title, claim=claim, **about) for title, claim, each in named)

    @property
    def sentence(self) -> str:
        credits, parts = iter(self.estimates), []
        if self.rows.burst_s.isna().all():
            return f"In none of {count(len(self.rows), 'trial')} did a rate fall as when burst credit is used up."
        for name, rows in self.rows.groupby("setting", sort=False):
            parts.append(f"“{name}” in {rows.burst_s.count()} of {count(len(rows), 'trial')}")
            if rows.burst_s.any():
                (burst_s, before, after, _), one = rows[[*NUMBERS]].mean(), next(credits)
                parts[-1] += f" (after {quantity(burst_s, 's')} from {quantity(before, 'bit/s')} to "
                parts[-1] += f"{quantity(after, 'bit/s')}: a credit of {one.formatted}"
                parts[-1] += f", {one.formatted_level} {one.formatted_interval})" if one.formatted_interval else ")"
        return f"Throttled because burst credit was used up: {'; '.join(parts)}."


def burst_credits(rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> Credits:
    """
    Find a lasting fall of the rate from clients to brokers in each trial, until its first producer ends.

    Raises MissingDataError: no trial has samples of links.
    """
    samples, rows = tables.get("link_samples", pd.DataFrame()), []
    about = rates.rates[[*KEY, "setting", "from_region", "end_s"]].rename(columns={"end_s": "until_s"})
    seen = windows(samples).merge(about, on=KEY) if len(samples) else pd.DataFrame()
    if seen.empty:
        raise MissingDataError("the run has no samples of links, so burst credit cannot be seen.")
    seen = seen[(seen.link_from == seen.from_region) & (seen.end_s <= seen.until_s)]
    seen = seen.assign(number=seen.groupby(LINK).cumcount(), length_s=seen.end_s - seen.start_s)
    for (*key, setting), own in seen.groupby([*KEY, "setting"], sort=False):
        most = own.groupby("link_to").carried_bps.transform("max")
        own = own[most > most.max() / 4]  # brokers without partitions carry hardly anything
        how = {"length_s": "mean", "carried_bps": "mean", "bytes_backlog": "min"}
        rows.append(dict(zip(KEY, key, strict=True)) | {"setting": setting} | fall(own.groupby("number").agg(how)))
    return Credits(pd.DataFrame(rows))


def fall(each: pd.DataFrame) -> dict[str, float]:
    """
    Return the numbers of a row of `Credits` from a trial's windows: length_s, carried_bps, bytes_backlog at the end.

    >>> rates = [40e6] * 8 + [20e6] + [10e6] * 11
    >>> found = fall(pd.DataFrame({"length_s": 1.0, "carried_bps": rates, "bytes_backlog": 9}))
    >>> [round(value, 1) for value in found.values()]
    [8.3, 40000000.0, 10000000.0, 31250000.0]
    """
    bps, none = each.carried_bps.to_numpy(float), dict.fromkeys(NUMBERS, np.nan)
    if len(last := bps[each.bytes_backlog > 0][-LEAST_WINDOWS:]) < LEAST_WINDOWS:
        return none
    after = float(last.mean())
    fast = np.flatnonzero(bps > after / FALL)
    before = float(np.median(bps[fast[0] : fast[-1] + 1])) if len(fast) >= LEAST_WINDOWS else 0.0
    if after > FALL * before:
        return none
    above = each[fast[0] : fast[-1] + 2]  # the change may lie within the window after the last fast one
    excess = float(((above.carried_bps - after).clip(lower=0) * above.length_s).sum())
    return dict(zip(NUMBERS, (excess / (before - after), before, after, excess / 8), strict=True))
