"""
Compute the rate at which the fullest link of each system would be full, from the bytes that it carried.

Copies of a record cross links to the leader, to followers, and to each consumer group. The links' counters include all
of them, and headers and requests. No latency is used, so this rate is independent of the knee of a latency curve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

import pandas as pd

from wanbench.errors import MissingDataError
from wanbench.formatting import count, number, quantity
from wanbench.methods.lab.utilisation import KEY, windows
from wanbench.methods.result import Estimate, Result
from wanbench.methods.result.means import geometric_mean
from wanbench.methods.trials.processors import processor_use

from .trials import ACKNOWLEDGED, RATE, SystemTrials

METHOD = (
    "rate of the fullest link times records acknowledged per second, divided by the bits per second that it carried; "
    "geometric mean over the trials in which the system kept up"
)
ASSUMPTION = "Bytes per record on a link are the same at higher rates, although batches may be larger there"


@dataclass(frozen=True, repr=False)
class Allowed(Result):
    """
    The highest rate that the links allow each system (`rates`), in records/s of all producers together.

    `trials` has one row per trial that counts: system, rate_records_per_s, partitions, link (the fullest one, as "A to
    B"), utilisation (of that link, mean after the warm-up, 0 to 1), busy_percent (processors of the busiest machine;
    NaN if not sampled), kept_up (whether the system handled the requested rate), allowed_records_per_s.
    """

    rates: dict[str, Estimate]
    trials: pd.DataFrame

    TITLE = "How full links and processors were"

    @property
    def sentence(self) -> str:
        return " ".join(f"{one.sentence}{self._too_high(name)}" for name, one in self.rates.items())

    def _too_high(self, system: str) -> str:
        own = self.trials[self.trials.system == system]
        rate = own[RATE][~own.kept_up].min()
        if pd.isna(rate):
            return ""
        at_rate = own[own[RATE] == rate]
        late, tried = at_rate[~at_rate.kept_up], count(len(at_rate), "trial")
        busy = late.busy_percent.mean()
        processors = f" and processors were {number(busy, 0)} % busy" if isfinite(busy) else ""
        return (
            f" The system fell behind in {len(late)} of {tried} at {number(rate)} records/s. In these trials the "
            f"fullest link carried {quantity(late.utilisation.mean(), 'fraction')} of its rate{processors}."
        )

    def processors_fuller(self, system: str, risen: float) -> tuple[str, ...]:
        """Return a caution if processors were nearer to full than any link at the first step from `risen` on."""
        own = self.trials[self.trials.system == system]
        steps = own[RATE][own[RATE] >= 0.999 * risen]  # `risen` is a step, apart from rounding, or between two
        step = own[own[RATE] == (steps.min() if len(steps) else own[RATE].max())]
        busy, used = step.busy_percent.mean(), 100 * step.utilisation.mean()
        if not busy > used:
            return ()
        return (
            f"at {number(step[RATE].min(), 0)} records/s the processors were {number(busy, 0)} % busy and the fullest "
            f"link carried {number(used, 0)} % of its rate, so the processors may cause this knee",
        )

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for (system, rate, partitions), part in self.trials.groupby(["system", RATE, "partitions"], sort=False):
            busy = part.busy_percent.mean()
            row = {"system": system, "records/s": number(rate, 0), "partitions": number(partitions, 0)}
            row["fullest link"] = part.link.mode().iloc[0]
            row["share of its rate carried"] = quantity(part.utilisation.mean(), "fraction")
            rows.append(row | {"processors busy": f"{number(busy, 0)} %" if isfinite(busy) else ""})
        return pd.DataFrame(rows)


def allowed(trials: SystemTrials, tables: Mapping[str, pd.DataFrame], **at: float) -> Allowed:
    """
    Compute the highest rate that the links allow each system, with other settings fixed by `at` (such as partitions=9).

    `tables` must have link_samples of all links; metrics are used if they exist. Raises MissingDataError: no link with
    a rate was sampled, as on clusters outside the lab, or no system handled the requested rate in any trial.
    """
    own = trials.matching(**at).query("counts")
    own = own.assign(from_s=own.start_s + own.warmup_s, until_s=own.start_s + own.warmup_s + own.duration_s)
    fullest = _fullest_links(own, tables.get("link_samples"))
    rows = own.merge(fullest, on=KEY).merge(_busy(own, tables.get("metrics")), on=KEY, how="left")
    if rows.empty:
        raise MissingDataError("no link with a rate was sampled in the counted seconds.")
    rows["allowed_records_per_s"] = rows[ACKNOWLEDGED] / rows.utilisation
    rates = {}
    for name in trials.systems:
        part = rows[(rows.system == name) & rows.kept_up]
        if part.empty:
            continue
        about = {"quantity": f"rate that the links allow {name}", "unit": "records/s", "method": METHOD}
        about["claim"] = f"The links allow “{name}” {{}}; at that rate the link from {part.link.mode().iloc[0]} is full"
        rates[name] = geometric_mean(part.allowed_records_per_s, 0.95, assumption=ASSUMPTION, **about)
    if not rates:
        raise MissingDataError("no system kept up in any trial, so bytes per record are unknown.")
    rows["place"] = rows.system.map(trials.systems.index)
    rows = rows.sort_values(["partitions", RATE, "place"], kind="stable", ignore_index=True)
    columns = [*KEY, "system", RATE, "partitions", "link", "utilisation", "busy_percent", "kept_up"]
    return Allowed(rates, rows[[*columns, "allowed_records_per_s"]])


def _fullest_links(own: pd.DataFrame, samples: pd.DataFrame | None) -> pd.DataFrame:
    """Return the link with the highest mean utilisation in the counted seconds of each trial, and this utilisation."""
    if samples is None or samples.empty:
        raise MissingDataError("links were not sampled: the cluster is outside the lab, or its links have no rate.")
    used = windows(samples).merge(own[[*KEY, "from_s", "until_s"]], on=KEY)
    # a window counts if its middle is in the counted seconds
    middle = (used.start_s + used.end_s) / 2
    used = used[(middle >= used.from_s) & (middle <= used.until_s) & used.utilisation.notna()]
    used = used.assign(link=used.link_from + " to " + used.link_to)
    means = used.groupby([*KEY, "link"], as_index=False).utilisation.mean()
    return means.sort_values("utilisation").drop_duplicates(KEY, keep="last")


def _busy(own: pd.DataFrame, metrics: pd.DataFrame | None) -> pd.DataFrame:
    """Return busy_percent of each trial: the processor utilisation of the busiest machine in the counted seconds."""
    if metrics is None or metrics.empty:
        return pd.DataFrame(columns=[*KEY, "busy_percent"]).astype({"busy_percent": float})
    rows = metrics[metrics.source == "sysstat"].merge(own[[*KEY, "from_s", "until_s"]], on=KEY)
    at_s = (pd.to_datetime(rows.at_utc, utc=True) - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    use = processor_use(rows[(at_s >= rows.from_s) & (at_s <= rows.until_s)])
    return use.groupby(KEY, as_index=False).busy_percent.max()
