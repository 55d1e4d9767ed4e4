"""Whatever is given, the public functions of `wanbench.methods` answer or refuse it in plain words; results pickle."""

import inspect
import pickle
from importlib import import_module
from types import ModuleType

import fault_tables
import numpy as np
import pandas as pd
import pytest
import tail_tables
import trial_tables
from simulations import simulated_surveys
from simulations.latency_samples import of_values
from test_stats_time_detection import made_up

from wanbench import methods
from wanbench.change_detection import DetectorSettings
from wanbench.errors import ParameterError, WanbenchError
from wanbench.methods import cost, lab
from wanbench.methods.result import Result
from wanbench.methods.result.means import median_of, share_of
from wanbench.pages import (
    geo_kafka,
    grids_and_predictions,
    intercloud_2022,
    intercloud_throughput,
    lab_calibration,
    private_vs_internet,
    region_loss,
    rolling_and_degraded,
)
from wanbench.pages.tail_latency.latencies import of_benchmark, of_open_loop
from wanbench.pages.tail_latency.quantiles import percentile_plot, quantiles
from wanbench.pages.tail_latency.trials import TailTrials
from wanbench.pages.tail_latency.verdicts import verdict
from wanbench.read.plausibility.rules import report
from wanbench.tables import from_rows

WRONG = {"None": None, "an empty table": pd.DataFrame(), "text": "text", "NaN": float("nan"), "a number": 3}
OF_PAGES = {
    geo_kafka: ("against_baseline", "client_rack", "count_region_bytes", "fit_scalability", "placement", "tornado"),
    grids_and_predictions: ("fit_predictor", "what_if"),
    intercloud_2022: ("compare_models",),
    intercloud_throughput: ("estimate_loss",),
    lab_calibration: ("cut_timeline",),
    private_vs_internet: ("fit_factorial",),
    region_loss: ("episodes", "losses", "recovery"),
    rolling_and_degraded: ("detection",),
    import_module("wanbench.pages.tail_latency.latencies"): ("of_benchmark", "of_open_loop"),
    import_module("wanbench.pages.tail_latency.quantiles"): ("compare_tails", "quantiles"),
    import_module("wanbench.pages.tail_latency.best_rates"): ("best_rate",),
    import_module("wanbench.pages.tail_latency.pauses"): ("causes", "per_second"),
    import_module("wanbench.pages.tail_latency.verdicts"): ("verdict", "verdicts"),
    import_module("wanbench.pages.tail_latency.trials"): ("TailTrials",),
}
PAIRS = simulated_surveys.survey(8, seed=3, region_ms=6, pair_ms=4)
QUICK = {"resamples": 40}
SHORT = DetectorSettings(learn_s=10, window_s=0.5)
ABOUT = {"quantity": "outage", "claim": "It lasted {}"}


def public():
    """The public functions, but not the classes of results, which nobody makes."""
    rooms = {room: room.__all__ for room in (methods, cost, lab)} | OF_PAGES
    for room, names in rooms.items():
        for name in names:
            one = getattr(room, name)
            kept = not isinstance(one, ModuleType | type) or one is TailTrials
            if kept:
                yield f"{room.__name__.removeprefix('wanbench.')}.{name}", one


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("name", "function"), dict(public()).items())
def test_wrong_input_is_answered_or_refused(name, function, wrong):
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    needed = [p for p in needed if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    try:
        function(**{each.name: WRONG[wrong] for each in needed})
    except WanbenchError as error:
        assert str(error)


FITS = {
    "rtt": methods.fit_rtt,
    "throughput": methods.fit_throughput,
    "window": methods.fit_window,
    "inflation": methods.path_inflation,
}


@pytest.mark.parametrize("settings", [{"resamples": 2}, {"resamples": -1}, {"resamples": 99.5}, {"seed": "a"}])
@pytest.mark.parametrize("fit", FITS)
def test_too_few_resamples_and_seeds_that_are_none_are_refused(fit, settings):
    with pytest.raises(ParameterError, match=r"(resamples|seed) is .*; allowed: a whole number of at least"):
        FITS[fit](PAIRS, **settings)


@pytest.mark.parametrize("fit", ["rtt", "inflation", "window"])
def test_rtts_in_seconds_caution_about_units(fit):
    seconds = FITS[fit](PAIRS.assign(rtt_ms=PAIRS.rtt_ms / 1000), **QUICK)
    assert "are the RTTs in ms and the distances in km?" in str(seconds)
    assert "are the RTTs" not in str(FITS[fit](PAIRS, **QUICK))


def lost():
    return quantiles(of_values([np.full(50, np.inf)]), 0.5)


REFUSED = {
    "trials of empty tables": (
        lambda: methods.trial_rates({"tests": pd.DataFrame(), "trials": pd.DataFrame()}),
        "table tests lacks columns",
    ),
    "a verdict at 1": (
        lambda: verdict(*[TailTrials("a", [of_values([np.arange(9.0)])])] * 2, at=1),
        "quantile is 1; allowed",
    ),
    "a median of text": (lambda: median_of(["a"], **ABOUT), "values is .*; allowed: numbers"),
    "too few flags": (lambda: median_of([1, 2], [True], **ABOUT), "censored is .* each of 2 values"),
    "5 of 3": (lambda: share_of(5, 3, **ABOUT), "hits is 5; allowed: a whole number from 0 to 3"),
    "a figure of a lost tail": (lambda: percentile_plot([lost()]), "no distribution has a record that arrived"),
    "no flags": (lambda: methods.with_and_without(methods.fit_rtt, PAIRS, None), "table flags is 'NoneType'"),
    "no analysis": (lambda: methods.with_and_without(None, PAIRS, from_rows("flags", [])), "analysis is 'NoneType'"),
    "a report of nothing": (lambda: report(None), "table flags is 'NoneType'"),
    "closed-loop tests": (lambda: of_open_loop(PAIRS), "table open_loop_histograms lacks columns"),
    "histograms as quantiles": (lambda: of_benchmark(PAIRS, PAIRS), "table quantiles lacks columns"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_each_is_refused_by_what_is_wrong_and_what_is_allowed(case):
    call, message = REFUSED[case]
    with pytest.raises(ParameterError, match=message):
        call()


def test_flags_of_columns_without_a_name_are_kept():
    flags = from_rows("flags", []).astype({"column_name": "float64"})
    assert "flag none" in str(
        methods.with_and_without(lambda pairs: methods.fit_rtt(pairs, **QUICK), PAIRS, flags, about="rtt")
    )


def test_a_lost_tail_leaves_the_figure_to_the_others():
    other = quantiles(of_values([np.arange(1.0, 99.0)], "other"), 0.5)
    assert len(percentile_plot([lost(), other]).data) == len(percentile_plot([other]).data)


def test_a_short_baseline_is_cautioned():
    assert not DetectorSettings().cautions
    assert "learned its baseline from only 10 s" in SHORT.cautions[0]
    made = made_up(200, [])
    runs = made["detection_runs"].assign(learn_s=SHORT.learn_s, window_s=SHORT.window_s)
    assert "learned its baseline from only 10 s" in str(rolling_and_degraded.detection(made | {"detection_runs": runs}))


def rates():
    return methods.trial_rates(trial_tables.together([trial_tables.trial(k, "ab"[k % 2], 50.0 + k) for k in range(4)]))


def benchmark():
    rows = [
        {"what": "end to end", "window": k, "quantile": q, "latency_ms": 5 + 9 * q}
        for k in (None, 0)
        for q in (0.5, 0.9)
    ]
    windows = pd.DataFrame({"window": [0], "consume_records_per_s": 100.0, "max_end_to_end_ms": 20.0})
    return of_benchmark(pd.DataFrame(rows), windows)


def open_loop():
    load = tail_tables.trial(0, "plain", 100, 6, 1, np.random.default_rng(0))
    return of_open_loop(tail_tables.made("open_loop_histograms", load["open_loop_histograms"]))


RESULTS = {
    **{name: lambda fit=fit: fit(PAIRS, **QUICK) for name, fit in FITS.items()},
    "predictor": lambda: grids_and_predictions.fit_predictor(PAIRS),
    "clouds": lambda: intercloud_2022.compare_clouds(PAIRS),
    "model": lambda: import_module("wanbench.pages.intercloud_2022.fit_model").fit_model(PAIRS, "window-limited"),
    "sensitivity": lambda: methods.with_and_without(
        lambda pairs: methods.fit_rtt(pairs, **QUICK), PAIRS, from_rows("flags", [])
    ),
    "trial rates": rates,
    "detection": lambda: rolling_and_degraded.detection(made_up(200, [])),
    "cost": lambda: cost.cluster_cost(
        cost.Deployment(brokers=1, instance_usd_per_hour=(0.5, 1, 2), messages_per_s=9, message_bytes=1000)
    ),
    "quantiles of runs": lambda: quantiles(of_values([np.arange(1.0, 99.0)] * 2), 0.5),
    "benchmark": lambda: quantiles(benchmark(), 0.5),
    "pooled trials": lambda: quantiles(TailTrials("a", [benchmark(), lost().tail]).pooled, 0.5),
    "verdict": lambda: verdict(*[TailTrials("a", [of_values([np.arange(9.0)])])] * 2, at=0.5),
    "outages": lambda: region_loss.recovery(region_loss.episodes(fault_tables.together([fault_tables.episode()]))),
    "open loop": lambda: quantiles(open_loop(), 0.5),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_pickles(kind):
    result = RESULTS[kind]()
    again = pickle.loads(pickle.dumps(result))
    assert str(again) == str(result)
    if isinstance(result, Result):
        pd.testing.assert_frame_equal(again.table(), result.table())
