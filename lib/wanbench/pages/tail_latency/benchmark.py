"""The OpenMessaging Benchmark on the same cluster, compared with open-loop trials of the same load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from wanbench.errors import MissingDataError

from .compare import TailComparison, compare_tails
from .latencies import of_benchmark
from .repeated import TailTrials

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)


def benchmark(
    own: TailTrials, tables: Mapping[str, pd.DataFrame], *, what: str = "end to end", at: Sequence[float] = QUANTILES
) -> TailComparison:
    """
    Percentiles of the benchmark's run minus those of the open-loop trials. The benchmark's latency counts from the
    actual send, in whole milliseconds.

    Raises
    ------
    MissingDataError
        If the run has no result of the benchmark.
    """
    runs = tables.get("benchmark_runs", pd.DataFrame())
    if not len(runs):
        raise MissingDataError(
            "no distribution of the OpenMessaging Benchmark was given: parameter omb_distribution names its folder."
        )
    first = runs.iloc[0]
    rows = {
        name: tables[name][(tables[name].source_file == first.source_file) & (tables[name].test_id == first.test_id)]
        for name in ("quantiles", "benchmark_windows")
    }
    return compare_tails(own.pooled, of_benchmark(rows["quantiles"], rows["benchmark_windows"], what=what), at)
