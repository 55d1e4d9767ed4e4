"""Read the start, RTT and throughput of every test of a campaign, or simulate a year of tests."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from wanbench.folders import data_folder
from wanbench.formatting import count
from wanbench.read.ingest import CampaignTables, tabulate_campaign
from wanbench.regions import distance_km, light_rtt_ms
from wanbench.runs import Run

MEASURES = {"rtt_ms": ("RTT", "ms"), "throughput_bps": ("throughput", "bit/s")}
# The RTT of a test is the minimum of its echoes, which leaves out queueing, as on page 02.
QUERY = """
SELECT from_region, to_region, started_at_utc AS at_utc, rtt_ms, throughput_bps
FROM tests
LEFT JOIN (SELECT run_id, test_id, attempt, min(rtt_ms) AS rtt_ms FROM echoes
           WHERE NOT lost AND NOT duplicate GROUP BY ALL) USING (run_id, test_id, attempt)
LEFT JOIN (SELECT run_id, test_id, attempt, median(throughput_bps) AS throughput_bps FROM transfers
           WHERE protocol = 'TCP' AND direction = 'forward' AND error IS NULL GROUP BY ALL)
    USING (run_id, test_id, attempt)
WHERE outcome = 'done' AND started_at_utc IS NOT NULL
ORDER BY started_at_utc
"""
YEAR = "2025"
NEAR_MS = 0.5  # Between two regions in one city.
STEP_SD, SHARED_SD, MEMORY = 0.006, 0.003, 0.6  # Of log RTT: noise of a test, and of the day, which all pairs share.
DAILY, WEEKLY = 0.01, -0.01  # Of log RTT: amplitude over the hours of a day, and the difference on weekends.
BURSTS, BURST = 0.03, 0.15  # Share of tests in a burst, and its mean height in log RTT.


@dataclass(frozen=True)
class Campaign:
    """
    The tests of a campaign.

    `values` has one row per test (`values_of_tests`). For simulated tests, `about` says that they are simulated, and
    `tables` is None. `runs` has only the first and the last run, because opening all runs of a year takes long.
    """

    values: pd.DataFrame
    about: str = ""
    tables: CampaignTables | None = None
    runs: tuple[Run, ...] = ()

    def say(self, text: str) -> str:
        """Return the text, with `about` before it if the tests are simulated."""
        return f"{self.about}: {text}" if self.about else text

    def __str__(self) -> str:
        days = f"{self.values.at_utc.min():%Y-%m-%d} to {self.values.at_utc.max():%Y-%m-%d}"
        return f"{count(len(self.values), 'test')}, {days}. {self.about}".strip()

    __repr__ = __str__


def open_campaign(campaign: str, *, regions: list[str], seed: int = 1) -> Campaign:
    """
    Read all runs of a campaign or, if `campaign` is "", simulate a year of tests between `regions`.

    Raises
    ------
    ParameterError
        There is no such campaign.
    """
    if not campaign:
        return Campaign(simulated_year(regions, seed=seed), "In a simulated year, not in a measured one")
    tables = tabulate_campaign(campaign)
    names = dict.fromkeys(tables.folders[at].name.removeprefix("run=") for at in (0, -1))
    runs = tuple(Run.open(data_folder() / "raw" / campaign / name) for name in names)
    return Campaign(values_of_tests(tables), "", tables, runs)


def values_of_tests(tables: CampaignTables) -> pd.DataFrame:
    """Return a row per finished test: from_region, to_region, at_utc, minimum rtt_ms, throughput_bps (null if none)."""
    return tables.query(QUERY)


def simulated_year(regions: list[str], *, tests_per_day: int = 4, seed: int = 1) -> pd.DataFrame:
    """
    Return a year of simulated tests between all ordered pairs of regions, with the columns of `values_of_tests`.

    The RTT of every third pair changes once, by 3 to 20 %, on a random day, and throughput changes inversely. Noise is
    skewed and autocorrelated; some tests and one week are missing.
    """
    rng, parts = np.random.default_rng(seed), []
    at = pd.date_range(YEAR, periods=365 * tests_per_day, freq=pd.Timedelta("1D") / tests_per_day, tz="UTC")
    rhythm = DAILY * np.sin(2 * np.pi * at.hour / 24) + WEEKLY * (at.day_of_week >= 5)
    shared = lfilter([1.0], [1.0, -MEMORY], rng.normal(0, SHARED_SD, 365)).repeat(tests_per_day)
    for k, (start, end) in enumerate(permutations(regions, 2)):
        noise = lfilter([1.0], [1.0, -MEMORY], rng.normal(0, STEP_SD, len(at)))
        bursts = rng.exponential(BURST, len(at)) * (rng.random(len(at)) < BURSTS)
        change = rng.choice([-1, 1]) * rng.uniform(0.03, 0.2) * (at >= at[rng.integers(len(at))]) * (k % 3 == 0)
        rtt_ms = (NEAR_MS + 1.5 * light_rtt_ms(distance_km(start, end))) * np.exp(
            rhythm + shared + noise + bursts + change
        )
        throughput = 1e9 / rtt_ms * np.exp(rng.normal(0, 0.05, len(at)))
        part = pd.DataFrame({"from_region": start, "to_region": end, "at_utc": at, "rtt_ms": rtt_ms})
        parts.append(part.assign(throughput_bps=throughput)[rng.random(len(at)) > 0.03])
    values = pd.concat(parts).sort_values("at_utc", kind="stable")
    return values[values.at_utc.dt.isocalendar().week != 30].reset_index(drop=True)
