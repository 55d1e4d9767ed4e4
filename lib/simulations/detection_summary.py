"""Summarise the simulated detector of slow brokers: false alarms, and the time until it detects a known shift."""

from __future__ import annotations

import json

import pandas as pd
from scipy.stats import poisson

from wanbench.change_detection import DetectorSettings
from wanbench.findings import Finding
from wanbench.formatting import count, number

from .detection import PROMISED_PER_H, SHORT, WITHIN_S
from .simulation import describe
from .summaries import ASSUMPTION, METHOD, by_quantity

MOST = (0, 2)
"""
Numbers of false alarms in an hour. With more than two, the exact interval of the rate (in
`pages.rolling_and_degraded.detection`) excludes the promised rate.
"""
SOON_S = WITHIN_S[1]
ASKED = DetectorSettings().shift
LEARNED = f"after {SHORT['learn_s']} s of learning"


def promised(most: int) -> float:
    """
    Return the share of hours with at most `most` false alarms, if these are independent and have the promised rate.

    >>> round(promised(0), 3)
    0.607
    """
    return float(poisson.cdf(most, PROMISED_PER_H))


def false_alarms(table: pd.DataFrame) -> pd.DataFrame:
    """Return the share (%) of hours with few false alarms, by kind of load; `kept` says whether it is as promised."""
    rows = _settings(table)
    quiet = rows[rows["shift"] == 1]
    titles = {_hours(most): f"at most {most} (promised {100 * promised(most):.1f} %)" for most in MOST}
    shown = _shown(quiet, titles)
    return shown.assign(kept=["yes" if kept else "no" for kept in _kept(quiet)])


def delays(table: pd.DataFrame) -> pd.DataFrame:
    """Return the share (%) of shifts that were detected within some seconds, by kind of load and shift."""
    rows = _settings(table)
    return _shown(rows[rows["shift"] > 1], {f"alarm within {s} s": f"within {s} s" for s in WITHIN_S})


def detector_finding(table: pd.DataFrame, name: str) -> Finding:
    """State for how many kinds of load the promised rate is kept, and how soon the configured shift is detected."""
    rows = _settings(table)
    quiet = rows[rows["shift"] == 1]
    kept = _kept(quiet)
    broken = list(dict.fromkeys(_kind(setting) for setting in kept.index[~kept]))
    asked = rows[(rows["shift"] == ASKED) & (rows.quantity == f"alarm within {SOON_S} s")]
    low, high = asked.coverage.min(), asked.coverage.max()
    but = f", but not under {', '.join(f'“{kind}”' for kind in broken)}" if broken else ""
    return Finding(
        name=name,
        sentence=f"The detector of slow brokers keeps to the promised {PROMISED_PER_H:g} false alarms an hour under "
        f"{int(kept.sum())} of {count(len(kept), 'kind')} of load ({number(quiet.data_sets.min())} hours of "
        f"each){but}. A shift by a factor of {ASKED:g}, which it is configured to find, is reported within {SOON_S} s "
        f"in {100 * low:.0f} to {100 * high:.0f} % of cases.",
        estimate=float(asked.covered.sum() / asked.data_sets.sum()),
        low=float(low),
        high=float(high),
        unit="fraction",
        n=int(asked.data_sets.sum()),
        n_regions=None,
        method=f"{METHOD}; the promised rate is kept if no share of hours is below that of a Poisson process "
        "with this rate; the range given is that over the kinds",
        assumption=ASSUMPTION,
    )


def _shown(rows: pd.DataFrame, titles: dict[str, str]) -> pd.DataFrame:
    shown = by_quantity(rows, titles)
    return shown.set_axis([each.replace(", shift 1.0", "").replace(describe(SHORT), LEARNED) for each in shown.index])


def _kind(setting: str) -> str:
    load = json.loads(setting)
    return ", ".join([load["kind"]] + [LEARNED] * ("learn_s" in load))


def _hours(most: int) -> str:
    return f"at most {most} false alarms in an hour"


def _settings(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(shift=[json.loads(setting)["shift"] for setting in table.setting])


def _kept(quiet: pd.DataFrame) -> pd.Series:
    """Return for each setting whether no share of hours is significantly below the promised share."""
    least = quiet.quantity.map({_hours(most): promised(most) for most in MOST})
    own = quiet[least.notna()]
    return (own.coverage_high >= least.dropna()).groupby(own.setting, sort=False).all()
