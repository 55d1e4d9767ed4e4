"""Count bytes on the links between regions: per message, and with consumers that read in their own region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from wanbench.checks import check_columns, check_kind
from wanbench.errors import MissingDataError, ParameterError
from wanbench.formatting import count, number
from wanbench.methods.lab.utilisation import KEY, LINK
from wanbench.methods.result import LEVEL, Estimate, Fields, Result, text_table
from wanbench.methods.result.means import geometric_mean, ratio_of_differences
from wanbench.methods.trials.counted_seconds import one_replica
from wanbench.methods.trials.rates import TrialRates


def region_bytes(rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """
    Count bytes and records of every trial whose links were all sampled.

    tables: Tables of the run: links, link_samples, batches.

    Returns DataFrame: One row per trial: its key (`KEY`); `link_bytes`, the bytes on all links together, including
        headers and lost packets; `records`, the records in the log, each counted once, not once per replica.
    """
    samples = rates.part(tables.get("link_samples"))
    groups = samples.groupby(LINK)[["bytes_delivered", "bytes_lost"]]
    carried = (groups.max() - groups.min()).sum(axis=1).groupby(level=KEY)
    every = tables["links"].groupby("run_id").size()
    complete = carried.size() == carried.size().index.get_level_values("run_id").map(every)
    total = carried.sum()[complete].rename("link_bytes").astype(float)
    records = one_replica(rates.part(tables["batches"])).groupby(KEY).records.sum()
    return total.reset_index().merge(records.reset_index(), on=KEY)


MEAN_METHOD = "geometric mean over trials, Student's t on logarithms with trials as independent units"
MEAN_ASSUMPTION = "All links between regions are counted, and carry only the traffic of this cluster and its clients"


@dataclass(frozen=True, repr=False)
class CountedBytes(Result):
    """
    Bytes between regions per message, and messages per second.

    per_message, messages_per_s: Geometric means over the trials, inputs of `Deployment`.
    """

    per_message: Estimate
    messages_per_s: Estimate

    TITLE = "Bytes between regions"


def count_region_bytes(rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> CountedBytes:
    """
    Estimate the bytes on all links per message in the log, from whole trials of one setting.

    rates: Trials of one setting, such as `rates.of("baseline")`.
    tables: Tables of the run: links, link_samples of `LinkSamples(which="all")`, batches.

    Raises ParameterError: there is no trial, or trials have several settings.
    Raises MissingDataError: no trial has the counters of all links.
    """
    trials = check_kind("rates", rates, TrialRates).rates
    settings = list(dict.fromkeys(trials.setting))
    if len(settings) != 1:
        raise ParameterError(
            f"the trials have {count(len(settings), 'setting')} ({', '.join(map(str, settings))}); allowed: one."
        )
    rows = trials[[*KEY, "records_per_s"]].merge(region_bytes(rates, tables), on=KEY)
    rows = rows[(rows.records_per_s > 0) & (rows.records > 0)]
    if rows.empty:
        raise MissingDataError('no trial has the counters of all links; sample them with LinkSamples(which="all").')
    dropped = len(trials) - len(rows)
    notes = (f"{count(dropped, 'trial')} left out, because the counters of all links are missing",) if dropped else ()
    if (trials.background_bps.fillna(0) > 0).any():
        notes += ("background traffic is included in these bytes",)
    crossing = ("bytes between regions per message", "Each message causes {} between regions", "bytes", notes)
    sent = ("messages per second", "In these trials producers sent {}", "messages/s", ())
    return CountedBytes(
        mean_of_trials(rows.link_bytes / rows.records, *crossing), mean_of_trials(rows.records_per_s, *sent)
    )


def mean_of_trials(values: pd.Series, quantity: str, claim: str, unit: str, notes: tuple[str, ...]) -> Estimate:
    """Estimate the geometric mean of `values`, one per trial; the other arguments are fields of the Estimate."""
    about = {"unit": unit, "method": MEAN_METHOD, "assumption": MEAN_ASSUMPTION, "warnings": notes}
    return geometric_mean(values, LEVEL, quantity=quantity, claim=claim, **about)


NONE, LEADERS, RACK = "no consumers", "consumers reading from leaders", "consumers reading in their own region"
METHOD = (
    "bytes over all links per byte of payload, less those of trials without consumers; Fieller's interval (1954) of a "
    "ratio of differences, with a separate variance for each setting (Welch 1947)"
)
ASSUMPTION = "Producers and replicas cause the same bytes with and without consumers; trials are independent"


@dataclass(frozen=True, repr=False)
class ClientRack(Result):
    """
    The effect of client.rack, which lets consumers read in their own region, on the bytes between regions.

    ratio: Bytes between regions that consumers cause with client.rack, over those that they cause without it.
    trials: One row per trial: reading (`NONE`, `LEADERS` or `RACK`), setting, link_bytes, payload_bytes, crossings
        (link_bytes over payload_bytes), consumed (bytes that consumers report over payload_bytes, without the last
        fraction of a second).
    """

    ratio: Estimate
    trials: pd.DataFrame

    TITLE = "Bytes across regions per byte of payload"

    @property
    def sentence(self) -> str:
        means = self.trials.groupby("reading").crossings.mean()
        listed = ", ".join(f"{number(means[name], 3)} with {name}" for name in (NONE, LEADERS, RACK))
        return f"{self.ratio.sentence} Bytes across regions per byte of payload: {listed}."

    def formatted_table(self) -> pd.DataFrame:
        groups = self.trials.groupby("reading")
        means = groups[["crossings", "consumed"]].mean()
        means.insert(0, "n_trials", groups.size())
        rows = text_table(means.loc[[NONE, LEADERS, RACK]].reset_index())
        heads = ["setting", "trials", "bytes across regions per byte of payload", "bytes consumed per byte of payload"]
        return rows.set_axis(heads, axis=1)


def client_rack(trials: pd.DataFrame, rates: TrialRates, tables: Mapping[str, pd.DataFrame]) -> ClientRack:
    """
    Estimate the ratio of the cross-region bytes that consumers cause with client.rack to those that they cause without.

    trials: Rows of `TrialRates.rates` that differ only in the number of consumer groups and in where they read. Only
        trials with the most groups and trials without consumers are used.
    tables: Tables of the run: links, link_samples, batches, consumer_windows.

    Raises MissingDataError: of the trials whose links were all sampled, none ran without consumers, none with
        client.rack, or none without it.
    """
    check_columns("trials", trials, [*KEY, "setting", "consumer_groups", "client_rack", "record_bytes"])
    check_kind("rates", rates, TrialRates)
    own = trials[trials.consumer_groups.isin([0, trials.consumer_groups.max()])]
    rack = np.where(own.client_rack.isna(), LEADERS, RACK)
    own = own.assign(reading=np.where(own.consumer_groups == 0, NONE, rack))
    totals = own[[*KEY, "setting", "reading", "record_bytes"]].merge(region_bytes(rates, tables), on=KEY)
    read = rates.part(tables["consumer_windows"]).groupby([*KEY, "group", "consumer"], dropna=False).bytes.max()
    consumed = read.groupby(level=KEY).sum().rename("consumed_bytes").reset_index()
    totals = totals.merge(consumed, on=KEY, how="left").fillna({"consumed_bytes": 0.0})
    totals["payload_bytes"] = totals.records * totals.record_bytes.astype(float)
    totals["crossings"] = totals.link_bytes / totals.payload_bytes
    totals["consumed"] = totals.consumed_bytes / totals.payload_bytes
    missing = [name for name in (NONE, LEADERS, RACK) if name not in set(totals.reading)]
    if missing:
        raise MissingDataError(f"no trial has the counters of all links with {', '.join(missing)}.")
    columns = ["reading", "setting", *KEY, "link_bytes", "payload_bytes", "crossings", "consumed"]
    return ClientRack(_ratio(totals), totals[columns].reset_index(drop=True))


def _ratio(totals: pd.DataFrame) -> Estimate:
    sides = [totals.crossings[totals.reading == name].to_numpy() for name in (RACK, LEADERS, NONE)]
    value, low, high = ratio_of_differences(sides[0], sides[1], sides[2], LEVEL)
    sizes, notes = [len(side) for side in sides], ()
    if min(sizes) < 2:
        notes = ("no interval, because a setting was measured only once",)
    elif np.isinf(low):
        notes = ("consumers without client.rack cause no measurable bytes",)
    name = "cross-region bytes of consumers, with client.rack over without"
    claim = "With client.rack, consumers cause {} of the bytes across regions that they cause without it"
    basis = f"{sizes[0]} trials with it, {sizes[1]} without it, {sizes[2]} without consumers"
    about: Fields = {"basis": basis, "level": LEVEL, "warnings": notes}
    return Estimate(name, claim, value, low, high, "fraction", sum(sizes), METHOD, ASSUMPTION, **about)
