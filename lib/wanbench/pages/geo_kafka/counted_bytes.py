"""Bytes between regions per message, counted on the links rather than assumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from wanbench.checks import check_kind, check_level
from wanbench.errors import MissingDataError, ParameterError
from wanbench.formatting import count
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.trials.means import geometric_mean
from wanbench.methods.trials.rates import TrialRates

from .region_bytes import region_bytes

METHOD = "geometric mean over trials, Student's t on logarithms with the trial as the unit"
ASSUMPTION = "The links counted are all links between regions, and carried nothing but this cluster and its clients"


@dataclass(frozen=True, repr=False)
class CountedBytes(RowsResult):
    """
    Bytes between regions per message.

    Attributes
    ----------
    rows : DataFrame
        Per trial: run_id, test_id, attempt, setting, messages_per_s (in the counted seconds), link_bytes (all links
        together, headers included) and records of the whole trial, region_bytes_per_message.
    per_message, messages_per_s : Estimate
        Geometric means over the trials, for `Deployment`.
    """

    per_message: Estimate
    messages_per_s: Estimate

    TITLE = "Bytes between regions"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Bytes per message, messages per second."""
        return (self.per_message, self.messages_per_s)

    @property
    def sentence(self) -> str:
        """Both means."""
        return f"{self.per_message.sentence} {self.messages_per_s.sentence}"


def count_region_bytes(rates: TrialRates, tables: Mapping[str, pd.DataFrame], *, level: float = 0.95) -> CountedBytes:
    """
    Bytes on all links in each whole trial, per message in the log.

    Parameters
    ----------
    rates : TrialRates
        Trials of one setting: `rates.of("baseline")`.
    tables : mapping
        Tables of the run: links, link_samples of `LinkSamples(which="all")`, batches.

    Raises
    ------
    ParameterError
        No trial, or trials of several settings.
    MissingDataError
        No trial has the counters of all links.
    """
    level = check_level(level)
    trials = check_kind("rates", rates, TrialRates).rates
    settings = list(dict.fromkeys(trials.setting))
    if len(settings) != 1:
        raise ParameterError(
            f"the trials have {count(len(settings), 'setting')} ({', '.join(map(str, settings))}); allowed: one."
        )
    own = trials[[*KEY, "setting", "records_per_s"]].rename(columns={"records_per_s": "messages_per_s"})
    rows = own.merge(region_bytes(rates, tables), on=KEY)
    rows = rows[(rows.messages_per_s > 0) & (rows.records > 0)].reset_index(drop=True)
    if rows.empty:
        raise MissingDataError('no trial has the counters of all links; sample them with LinkSamples(which="all").')
    rows["region_bytes_per_message"] = rows.link_bytes / rows.records
    dropped = len(trials) - len(rows)
    notes = (f"{count(dropped, 'trial')} left out: without the counters of all links",) if dropped else ()
    if (trials.background_bps.fillna(0) > 0).any():
        notes += ("background traffic is counted as if it were Kafka's",)
    per_message = mean_of_trials(
        rows.region_bytes_per_message,
        "bytes between regions per message",
        "Per message, {} cross between regions",
        "bytes",
        level,
        notes,
    )
    rate = mean_of_trials(
        rows.messages_per_s, "messages per second", "In these trials producers sent {}", "messages/s", level, ()
    )
    return CountedBytes(rows, per_message, rate)


def mean_of_trials(
    values: pd.Series, quantity: str, claim: str, unit: str, level: float, notes: tuple[str, ...]
) -> Estimate:
    """The geometric mean of one value per trial."""
    return geometric_mean(
        values, level, quantity=quantity, claim=claim, unit=unit, method=METHOD, assumption=ASSUMPTION, warnings=notes
    )
