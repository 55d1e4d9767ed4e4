"""
Bytes that consumers fetch from other regions, with and without client.rack, by the links' counters.

Producers and replicas also send across regions: their share is known from trials without consumers, and is subtracted.
Bytes are those of whole trials (`region_bytes`), over the payload in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from wanbench.checks import check_columns, check_kind
from wanbench.errors import MissingDataError
from wanbench.formatting import number
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate, Result, text_table
from wanbench.methods.trials.means import ratio_of_differences
from wanbench.methods.trials.rates import TrialRates

from .region_bytes import region_bytes

NONE, LEADERS, RACK = "no consumers", "from leaders", "from the own region"
METHOD = (
    "bytes over all links per byte of payload, less those without consumers; Fieller's interval (1954) of a ratio of "
    "differences, each setting with its own variance (Welch 1947)"
)
ASSUMPTION = "Producers and replicas cause the same bytes with and without consumers; trials are independent"


@dataclass(frozen=True, repr=False)
class ClientRack(Result):
    """
    Cross-region bytes of consumers, with client.rack over without.

    Attributes
    ----------
    ratio : Estimate
        Bytes with client.rack over bytes without.
    trials : DataFrame
        Per trial: reading (`NONE`, `LEADERS` or `RACK`), setting, link_bytes, payload_bytes, crossings (link_bytes over
        payload_bytes), consumed (bytes reported by consumers over payload; the last fraction of a second is missing).
    """

    ratio: Estimate
    trials: pd.DataFrame

    TITLE = "Bytes across regions per byte of payload"
    DRAWN_BY = "client_rack_figure.client_rack"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The ratio."""
        return (self.ratio,)

    @property
    def sentence(self) -> str:
        """The ratio and its two terms."""
        means = self.trials.groupby("reading").crossings.mean()
        listed = ", ".join(f"{number(means[name], 3)} {name}" for name in (NONE, LEADERS, RACK))
        return f"{self.ratio.sentence} Bytes across regions per byte of payload: {listed}."

    def table(self) -> pd.DataFrame:
        """`trials`."""
        return self.trials

    def formatted_table(self) -> pd.DataFrame:
        """One row per way of reading."""
        groups = self.trials.groupby("reading")
        means = groups[["crossings", "consumed"]].mean()
        means.insert(0, "n_trials", groups.size())
        rows = text_table(means.loc[[NONE, LEADERS, RACK]].reset_index())
        heads = ["consumers read", "trials", "bytes across regions per byte of payload", "bytes consumed per byte"]
        return rows.set_axis(heads, axis=1)


def client_rack(
    trials: pd.DataFrame, rates: TrialRates, tables: Mapping[str, pd.DataFrame], *, level: float = 0.95
) -> ClientRack:
    """
    Cross-region bytes of consumers with client.rack over those without.

    Parameters
    ----------
    trials : DataFrame
        Rows of `TrialRates.rates` that differ only in the number of consumer groups and in where they read. Trials with
        the most groups and trials without consumers are used.
    tables : mapping
        Tables of the run: links, link_samples, batches, consumer_windows.

    Raises
    ------
    MissingDataError
        If one of the three ways of reading was not measured, or not with the counters of all links.
    """
    check_columns("trials", trials, [*KEY, "setting", "consumer_groups", "client_rack", "record_bytes"])
    check_kind("rates", rates, TrialRates)
    own = trials[trials.consumer_groups.isin([0, trials.consumer_groups.max()])]
    rack = np.where(own.client_rack.isna(), LEADERS, RACK)
    own = own.assign(reading=np.where(own.consumer_groups == 0, NONE, rack))
    totals = own[[*KEY, "setting", "reading", "record_bytes"]].merge(region_bytes(rates, tables), on=KEY)
    totals = totals.merge(_consumed(rates, tables), on=KEY, how="left").fillna({"consumed_bytes": 0.0})
    totals["payload_bytes"] = totals.records * totals.record_bytes.astype(float)
    totals["crossings"] = totals.link_bytes / totals.payload_bytes
    totals["consumed"] = totals.consumed_bytes / totals.payload_bytes
    missing = [name for name in (NONE, LEADERS, RACK) if name not in set(totals.reading)]
    if missing:
        raise MissingDataError(f"no trial has the counters of all links with consumers reading {', '.join(missing)}.")
    columns = ["reading", "setting", *KEY, "link_bytes", "payload_bytes", "crossings", "consumed"]
    return ClientRack(_ratio(totals, level), totals[columns].reset_index(drop=True))


def _consumed(rates: TrialRates, tables) -> pd.DataFrame:
    """Bytes that consumers report having read, per trial."""
    windows = rates.part(tables["consumer_windows"])
    read = windows.groupby([*KEY, "group", "consumer"], dropna=False).bytes.max()
    return read.groupby(level=KEY).sum().rename("consumed_bytes").reset_index()


def _ratio(totals: pd.DataFrame, level: float) -> Estimate:
    sides = [totals.crossings[totals.reading == name].to_numpy() for name in (RACK, LEADERS, NONE)]
    value, low, high = ratio_of_differences(*sides, level)
    sizes, notes = [len(side) for side in sides], ()
    if min(sizes) < 2:
        notes = ("no interval: a setting was measured once",)
    elif np.isinf(low):
        notes = ("consumers without client.rack cause no measurable bytes",)
    return Estimate(
        quantity="cross-region bytes of consumers, with client.rack over without",
        claim="With client.rack, consumers cause {} of the bytes across regions that they cause without",
        estimate=value,
        low=low,
        high=high,
        unit="fraction",
        n=sum(sizes),
        basis=f"trials: {sizes[0]} with, {sizes[1]} without, {sizes[2]} with no consumers",
        method=METHOD,
        assumption=ASSUMPTION,
        level=level,
        warnings=notes,
    )
