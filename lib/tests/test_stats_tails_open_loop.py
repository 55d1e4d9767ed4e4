"""Tails of open-loop loads from histograms whose contents are known."""

from math import inf

import numpy as np
import pandas as pd
import pytest
from latency_samples import encoded
from simulations.latency_samples import of_values

from wanbench.errors import ParameterError
from wanbench.pages.tail_latency.latencies import of_open_loop

PER_SECOND = 100


def table(loads, groups=1, lost=0, warm=0, error_ms=0.0, behind=False):
    """`loads`: latencies in ms of each load, in order of time; `lost` of each second of the last group are missing."""
    rows = []
    for k, values in enumerate(loads):
        for window, second in enumerate(np.reshape(values, (-1, PER_SECOND))):
            for what, group in [("publish", None), *(("end to end", g) for g in range(groups))]:
                n_lost = lost if group == groups - 1 else 0
                rows.append(
                    {
                        "run_id": "r", "test_id": str(k), "attempt": 1, "source_file": "f", "what": what,
                        "group": group, "window": window, "warm_up": window < warm, "n": PER_SECOND - n_lost,
                        "n_lost": n_lost,
                        "fell_behind": behind, "clock_error_ms": error_ms if what == "end to end" else 0.0,
                        "histogram": encoded(1_000 * second[n_lost:] * (0.5 if what == "publish" else 1)),
                    }
                )  # fmt: skip
    return pd.DataFrame(rows).astype({"group": "Int64"})


def test_seconds_of_one_load_are_stretches_and_loads_are_runs():
    rng = np.random.default_rng(1)
    loads = [rng.lognormal(mean, 0.5, 20 * PER_SECOND) for mean in (2, 2.5, 3, 3.5)]
    one, several = of_open_loop(table(loads[:1])), of_open_loop(table(loads))
    assert one.parts.kind == "stretches of time" and several.parts.kind == "runs"
    for tail, runs in ((one, loads[:1]), (several, loads)):
        exact = of_values(runs)
        assert tail.n == exact.n
        assert tail.quantile(0.99) == pytest.approx(exact.quantile(0.99), rel=2e-3)
        assert tail.effective_n(0.5) == pytest.approx(exact.effective_n(0.5), rel=0.2)
    assert of_open_loop(table(loads[:1]), what="publish").quantile(0.5) == pytest.approx(
        one.quantile(0.5) / 2, rel=2e-3
    )


def test_groups_of_a_second_are_one_stretch_and_add_nothing_to_the_information():
    values = np.random.default_rng(2).lognormal(2, 0.5, 30 * PER_SECOND)
    slow = values * np.repeat([1, 3] * 15, PER_SECOND)
    alone, together = of_open_loop(table([slow])), of_open_loop(table([slow], groups=3))
    assert together.n == 3 * alone.n and together.quantile(0.9) == alone.quantile(0.9)
    assert together.effective_n(0.5) == pytest.approx(alone.effective_n(0.5), rel=0.05)


def test_lost_records_are_slower_than_all_others():
    tail = of_open_loop(table([np.full(1_000, 7.0)], groups=2, lost=10))
    assert (tail.n, tail.n_lost) == (2_000, 100)
    assert tail.quantile(0.95) == pytest.approx(7, rel=1e-3) and tail.quantile(0.96) == inf
    assert of_open_loop(table([np.full(1_000, 7.0)], lost=100)).n_lost == 1_000


def test_the_warm_up_is_left_out_as_marked():
    frame = table([np.full(4_000, 7.0)], warm=3)
    assert of_open_loop(frame).n_cut == 300
    with pytest.raises(ParameterError, match="all seconds are warm-up"):
        of_open_loop(frame.assign(warm_up=True))


def test_what_a_reader_must_know_is_a_caution():
    values = np.full(1_000, 7.0)
    assert of_open_loop(table([values])).cautions == ()
    [behind] = of_open_loop(table([values] * 2, behind=True)).cautions
    assert "in 2 of 2 loads" in behind
    tail = of_open_loop(table([values], error_ms=8.0))
    assert tail.resolution_ms == 8 and "100 % of the latencies are below the uncertainty" in tail.cautions[0]
    assert of_open_loop(table([values], error_ms=8.0), what="publish").resolution_ms == 0


def test_what_is_not_there_is_refused():
    frame = table([np.full(100, 7.0)])
    with pytest.raises(ParameterError, match="no histogram for 'publish'"):
        of_open_loop(frame[frame.what == "end to end"], what="publish")
    with pytest.raises(ParameterError, match="what"):
        of_open_loop(frame, what="round trip")
    with pytest.raises(ParameterError, match="lacks column"):
        of_open_loop(frame.drop(columns="n_lost"))
