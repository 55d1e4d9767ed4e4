"""How many bytes cross between regions per message: counted by the links, not assumed."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
import pandas as pd

from ...checks import check_columns, check_level
from ...errors import ParameterError
from ...formatting import count
from ..lab.utilisation import KEY
from ..result import Estimate, RowsResult
from ..trials.means import half_width, ratio_estimate
from ..trials.rates import TrialRates

NEEDED = [*KEY, "link_from", "link_to", "at_s", "bytes_delivered"]
METHOD = "geometric mean over trials, Student's t on logarithms with the trial as the unit"
ASSUMPTION = (
    "The links counted are all links between regions, and carried nothing but this cluster and its clients"
)


@dataclass(frozen=True, repr=False)
class CountedBytes(RowsResult):
    """
    Bytes between regions per message.

    Attributes
    ----------
    rows : DataFrame
        Per trial: setting, run_id, test_id, attempt, n_links, region_bytes_per_s (all links together, headers
        included), messages_per_s, region_bytes_per_message.
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


def count_region_bytes(samples: pd.DataFrame, rates: TrialRates, *, level: float = 0.95) -> CountedBytes:
    """
    What all links together carried in the counted seconds of each trial, over the messages written meanwhile.

    A link's rate is its increase from the first sample inside these seconds to the last, over the time between them.

    Parameters
    ----------
    samples : DataFrame
        Table link_samples, of `LinkSamples(which="all")`.
    rates : TrialRates
        Trials of one setting: `rates.of("baseline")`.

    Raises
    ------
    ParameterError
        No trial, trials of several settings, or none with two samples of each link in its counted seconds.
    """
    level = check_level(level)
    check_columns("link_samples", samples, NEEDED)
    trials = rates.rates
    settings = list(dict.fromkeys(trials.setting))
    if len(settings) != 1:
        raise ParameterError(
            f"the trials have {count(len(settings), 'setting')} ({', '.join(map(str, settings))}); allowed: one."
        )
    own = trials[[*KEY, "setting", "start_s", "end_s", "records_per_s"]]
    merged = samples[NEEDED].merge(own, on=KEY).sort_values("at_s", kind="stable")
    links = merged[[*KEY, "link_from", "link_to"]].drop_duplicates().groupby(KEY).size()
    inside = merged[merged.at_s.between(merged.start_s, merged.end_s)]
    ends = inside.groupby([*KEY, "link_from", "link_to"]).agg(
        bytes=("bytes_delivered", np.ptp),
        s=("at_s", np.ptp),
        setting=("setting", "first"),
        messages=("records_per_s", "first"),
    )
    ends = ends[ends.s > 0]
    rows = (
        ends.assign(region_bytes_per_s=ends.bytes / ends.s)
        .groupby(KEY)
        .agg(
            setting=("setting", "first"),
            n_links=("s", "size"),
            region_bytes_per_s=("region_bytes_per_s", "sum"),
            messages_per_s=("messages", "first"),
        )
    )
    rows = rows[(rows.n_links == links.reindex(rows.index)) & (rows.messages_per_s > 0)].reset_index()
    if rows.empty:
        raise ParameterError(
            "no trial has two samples of each of its links in its counted seconds; sample more often than every "
            f"{float((own.end_s - own.start_s).median()):.3g} s."
        )
    rows["region_bytes_per_message"] = rows.region_bytes_per_s / rows.messages_per_s
    dropped = len(trials) - len(rows)
    notes = (f"{count(dropped, 'trial')} left out, without two samples of each link",) if dropped else ()
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
        rows.messages_per_s, "messages per second", "The cluster takes {}", "messages/s", level, ()
    )
    return CountedBytes(rows, per_message, rate)


def mean_of_trials(
    values: pd.Series, quantity: str, claim: str, unit: str, level: float, notes: tuple[str, ...]
) -> Estimate:
    """The geometric mean of one value per trial; such an interval stays above zero, where that of a mean may not."""
    logs = np.log(values.to_numpy(dtype=float))
    half = float(half_width(logs, level))
    return ratio_estimate(
        float(logs.mean()),
        half,
        quantity=quantity,
        claim=claim,
        unit=unit,
        n=len(values),
        basis=count(len(values), "trial"),
        method=METHOD,
        assumption=ASSUMPTION,
        level=level,
        warnings=notes if isfinite(half) else (*notes, "no interval: a single trial"),
    )
