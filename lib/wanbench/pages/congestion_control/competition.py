"""
Estimate how evenly competing flows share a path, and by how much they raise its latency.

`fairness` and `latency_under_load` read tables of tests that ran one setting of `design.CompetingFlows`
(`wanbench.read.ingest.pairs.selected` selects the setting).
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from wanbench.checks import check_choice
from wanbench.errors import MissingDataError
from wanbench.methods.result import LEVEL, Estimate
from wanbench.methods.result.means import mean_of

_TEST = ["run_id", "test_id", "attempt"]
_ALIKE = "Tests are independent and alike, and their values nearly normal"


def jain(rates: np.typing.ArrayLike) -> float:
    """
    Compute Jain's index of fairness: 1 if all n rates are equal, 1/n if all but one are 0 (Jain, Chiu and Hawe 1984).

    >>> jain([2.0, 2.0]), jain([1.0, 0.0, 0.0, 0.0])
    (1.0, 0.25)
    """
    rates = np.asarray(rates, dtype=float)
    return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum()))


def fairness(transfers: pd.DataFrame, *, direction: str = "forward") -> Estimate:
    """
    Estimate the mean over tests of Jain's index, from the throughput of the greedy flows of each test.

    direction: "forward" or "reverse"; only flows in this direction are compared. Tests in which one of them failed are
        left out.

    Raises MissingDataError: no test has two flows in this direction.
    """
    check_choice("direction", direction, ("forward", "reverse"))
    flows = transfers[transfers.source_file.str.contains(r"\.flow-\d+\.json", regex=True)]
    flows = flows[flows.direction.fillna(direction) == direction]
    tests = flows.groupby(_TEST).throughput_bps
    indices = tests.agg(jain)[(tests.size() == tests.count()) & (tests.size() > 1)]
    if indices.empty:
        raise MissingDataError(f"no test has two or more {direction} flows with a throughput.")
    estimate = mean_of(
        indices,
        LEVEL,
        unit_name="test",
        unit="",
        quantity="Jain's index",
        claim=f"Jain's index of the {direction} flows is {{}}",
        method="mean over tests, Student's t",
        assumption=_ALIKE,
    )
    return replace(estimate, high=min(estimate.high, 1.0))


def latency_under_load(echoes: pd.DataFrame) -> Estimate:
    """
    Estimate by how many ms the flows raise the RTT: per test, the median RTT with flows minus the median without;
    then the mean over tests. Lost echoes do not count.

    Raises MissingDataError: no test has replies with and without flows.
    """
    replies = echoes[~echoes.lost & ~echoes.duplicate]
    state = replies.source_file.str.extract(r"\.(idle|loaded)\.txt", expand=False)
    medians = replies.groupby([*(replies[name] for name in _TEST), state]).rtt_ms.median().unstack()
    if not {"idle", "loaded"} <= set(medians) or (differences := (medians.loaded - medians.idle).dropna()).empty:
        raise MissingDataError("no test has replies to pings both with and without flows.")
    return mean_of(
        differences,
        LEVEL,
        unit_name="test",
        unit="ms",
        quantity="latency under load",
        claim="The flows raise the median RTT by {}",
        method="mean over tests of the difference of medians, Student's t",
        assumption=_ALIKE,
    )
