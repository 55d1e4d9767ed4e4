"""Whether the machine, rather than the link, limited a test: how busy its processors were, by sysstat."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..errors import ParameterError
from ..findings import Finding
from ..wording import count
from .utilisation import KEY, Capacity

BUSY_PERCENT = 90.0
"""Share of a machine's processor time from which on a sample counts as busy."""
STEAL_PERCENT = 5.0
"""Mean share taken by others of the same physical machine from which on it counts as a limit."""
OFTEN = 0.5
"""Share of the samples of a test from which on what they say holds for the test."""
NAMES = {"user_percent": ("usr", "user"), "system_percent": ("sys", "system"), "iowait_percent": ("iowait",),
         "steal_percent": ("steal",), "idle_percent": ("idle",)}  # fmt: skip
METHOD = (
    f"processors busy for {BUSY_PERCENT:g} % of a sample or more in {100 * OFTEN:g} % of the samples, or "
    f"{STEAL_PERCENT:g} % of their time taken by others; sysstat"
)
VERDICTS = ("neither", "link", "machine", "both")


def processors(metrics: pd.DataFrame, *, busy_percent: float = BUSY_PERCENT) -> pd.DataFrame:
    """
    How busy the processors of each machine were in each test.

    Busy is what is neither idle nor waiting for a disk; time stolen by others of the same physical machine is busy.

    Parameters
    ----------
    metrics : DataFrame
        Table metrics; rows of sysstat on processors are in use.
    busy_percent : float
        From which on a sample counts as busy.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, host, n_samples; the means user_percent, system_percent, iowait_percent,
        steal_percent, idle_percent and busy_percent over all processors; greatest_busy_percent and
        greatest_steal_percent of a sample; busy_share, the share of samples that were busy; busiest_cpu_percent, the
        mean over samples of the busiest single processor.
    """
    rows = metrics[(metrics.source == "sysstat") & metrics.subject.str.fullmatch(r"cpu (all|\d+)")]
    keys = [*KEY, "host", "at_utc", "subject"]
    wide = pd.DataFrame({name: _shares(rows, keys, said) for name, said in NAMES.items()})
    wide["busy_percent"] = (100 - wide.idle_percent - wide.iowait_percent).clip(0, 100)
    wide = wide.reset_index()
    whole = wide[wide.subject == "cpu all"]
    single = (
        wide[wide.subject != "cpu all"].groupby([*KEY, "host", "at_utc"], dropna=False).busy_percent.max()
    )
    groups = whole.assign(is_busy=whole.busy_percent >= busy_percent).groupby([*KEY, "host"], dropna=False)
    means = groups[[*NAMES, "busy_percent"]].mean()
    found = means.assign(
        greatest_busy_percent=groups.busy_percent.max(),
        greatest_steal_percent=groups.steal_percent.max(),
        busy_share=groups.is_busy.mean(),
        busiest_cpu_percent=single.groupby(level=[*KEY, "host"], dropna=False).mean(),
    )
    found.insert(0, "n_samples", groups.size())
    return found.reset_index()


def _shares(rows, keys, names):
    part = rows[rows.metric.isin(names)]
    return part.drop_duplicates(keys).set_index(keys).value


def limits(
    processors: pd.DataFrame,
    capacity: Capacity,
    *,
    often: float = OFTEN,
    steal_percent: float = STEAL_PERCENT,
) -> pd.DataFrame:
    """
    What was full in each test: the machine, the link, both or neither.

    The machine was if the processors of any host were busy in at least the share `often` of the samples, or others
    took `steal_percent` or more of their time; the link was if any was at capacity in that share of its windows. Give
    both of the same time: samples from before and after a load dilute either (`TrialRates.marked`).

    Parameters
    ----------
    processors : DataFrame
        As `processors` returns it.
    capacity : Capacity
        As `stats.utilisation.capacity` returns it.

    Returns
    -------
    DataFrame
        run_id, test_id, attempt, busy_share, steal_percent (of the busiest host), share_at_capacity,
        greatest_utilisation (of the fullest link), verdict ("neither", "link", "machine", "both"). A test without
        samples of both is left out.
    """
    if not 0 < often <= 1:
        raise ParameterError(f"often is {often!r}; allowed is above 0 up to 1.")
    machine = processors.groupby(KEY, dropna=False)[["busy_share", "steal_percent"]].max()
    link = capacity.table.groupby(KEY, dropna=False)[["share_at_capacity", "greatest_utilisation"]].max()
    found = machine.join(link, how="inner")
    by_machine = (found.busy_share >= often) | (found.steal_percent >= steal_percent)
    by_link = found.share_at_capacity >= often
    return found.assign(verdict=np.array(VERDICTS)[2 * by_machine + by_link]).reset_index()


def said(found: pd.DataFrame) -> str:
    """
    What `limits` found, in a sentence.

    >>> said(pd.DataFrame({"verdict": ["machine", "neither"]}))
    'In 1 of 2 tests the machine was short of processors, in 0 a link was at capacity that often.'
    """
    if found.empty:
        return "How busy processors and links were was not measured together."
    by_machine, by_link = (int(found.verdict.isin([word, "both"]).sum()) for word in ("machine", "link"))
    return (
        f"In {by_machine:,} of {count(len(found), 'test')} the machine was short of processors, in {by_link:,} a link "
        "was at capacity that often."
    )


def finding(found: pd.DataFrame, name: str, page: str = "") -> Finding:
    """The finding whose sentence is that of `said`; its number is the share of tests without processors to spare."""
    short = found.verdict.isin(["machine", "both"])
    return Finding(
        name=name,
        sentence=said(found),
        estimate=float(short.mean()) if len(found) else None,
        low=None,
        high=None,
        unit="fraction",
        n=len(found),
        n_regions=None,
        method=METHOD,
        assumption="what the tests needed of the processors shows in samples of a second",
        page=page,
    )
