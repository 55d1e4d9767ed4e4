"""What limits a trial, against trials made to meet a limit."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from trial_tables import together, trial

from wanbench.errors import ParameterError
from wanbench.methods.tcp.models import RANDOM, mathis_bps
from wanbench.methods.trials.limits import limits, window_batches_per_s
from wanbench.methods.trials.rates import trial_rates

BATCH = 15_500  # bytes of a batch in the simulated log


def test_the_window_is_requests_in_flight_per_round_trip():
    assert window_batches_per_s(100, 16_384, producers=1, leaders=1, partitions=1) == pytest.approx(50)
    assert window_batches_per_s(100, 16_384, producers=3, leaders=3, partitions=9) == pytest.approx(1350)
    halved = window_batches_per_s(200, 16_384, producers=3, leaders=3, partitions=9)
    assert halved == pytest.approx(675)


def test_a_request_has_room_for_so_many_batches():
    whole = window_batches_per_s(100, 524_288, producers=1, leaders=1, partitions=8)
    assert whole == pytest.approx(100)  # two of half a MiB in each of five requests
    alone = window_batches_per_s(100, 4_000_000, producers=1, leaders=1, partitions=8)
    assert alone == pytest.approx(50)


def test_a_connection_holds_no_more_than_its_window():
    found = window_batches_per_s(100, 16_384, producers=2, leaders=1, partitions=1, window=32_768)
    assert found == pytest.approx(40)


def test_kafkas_own_buffers_are_taken_unless_others_are_given():
    rows = together([trial(1, "internet", 10, rtt_ms=80, rate_bps=1e10, batch_bytes=131_072, seconds=8)])
    rows["batches"]["bytes"] = rows["batches"].batches * 131_072
    found = trial_rates(rows)
    assert limits(found, brokers=1).trials.by_window[0] == pytest.approx(3 * 131_072 / 131_072 / 0.08, rel=1e-3)
    tuned = limits(found, brokers=1, connection_window_bytes=np.inf).trials.by_window[0]
    assert tuned == pytest.approx(3 * 5 * 2 / 0.08, rel=1e-3)


def with_pings(rtt_ms, batches_per_s=100):
    """One trial whose 40 echoes, three a second from its start on, had these RTTs; its seconds 4 to 11 count."""
    tables = together([trial(1, "wandering", batches_per_s, rtt_ms=100, rate_bps=1e10, seconds=8)])
    tables["echoes"]["rtt_ms"] = rtt_ms
    return limits(trial_rates(tables), brokers=1, connection_window_bytes=np.inf)


def test_a_window_passes_once_per_round_trip_however_long_that_takes():
    seconds = np.arange(40) / 3
    rtt_ms = 110 + 60 * np.sin(seconds / 2)
    counted = with_pings(rtt_ms).trials
    start, end = 4, 4 + counted.n_seconds[0]
    passed, at = 0, start
    while at < end:
        at += np.interp(at, seconds, rtt_ms) / 1000
        passed += 1
    assert counted.by_window[0] == pytest.approx(30 * passed / (end - start), rel=0.03)
    assert counted.by_window[0] > 1.1 * 30 / (counted.mean_rtt_ms[0] / 1000)


def test_pings_from_before_and_after_what_counts_say_nothing_of_it():
    found = with_pings(np.where(np.arange(40) < 12, 400.0, 50.0)).trials
    assert found.rtt_ms[0] == pytest.approx(50) and found.mean_rtt_ms[0] > 150


@pytest.mark.parametrize(("batches_per_s", "cautioned"), [(300, False), (302, False), (330, True)])
def test_more_than_a_limit_allows_is_cautioned(batches_per_s, cautioned):
    message = str(with_pings(np.full(40, 100.0), batches_per_s))
    assert ("1 trial reached more than the window allows" in message) == cautioned


def by(setting, batches_per_s, ordinal, **levels):
    return trial(ordinal, setting, batches_per_s, block=(ordinal + 1) // 2, **levels)


def test_each_limit_is_found_where_it_is_the_lowest():
    window = 3 * 5 * 2 / 0.1329
    lossy = mathis_bps(0.01, 132.9, constant=RANDOM) * 3 / (8 * BATCH)
    rate = (1 - 0.8 * 1028 / 1000) * 1e7 / (8 * BATCH * 1500 / 1448)  # blocks of 1,000 bytes by UDP
    rows = [
        by("by window", round(0.9 * window), 1, rtt_ms=132.9, rate_bps=1e9),
        by("by loss", round(0.9 * lossy), 2, rtt_ms=132.9, rate_bps=1e9, loss=0.01),
        by("by rate", 12, 3, rtt_ms=132.9, rate_bps=1e7),
    ]
    found = limits(trial_rates(together(rows)), brokers=1, connection_window_bytes=np.inf)
    trials = found.trials.set_index("setting")
    assert trials.limit.to_dict() == {"by window": "window", "by loss": "loss", "by rate": "rate"}
    np.testing.assert_allclose(trials.predicted, [window, lossy, rate], rtol=1e-3)
    assert set(found.reached) == {"window", "rate", "loss"}
    assert found.reached["window"].estimate == pytest.approx(0.9, abs=0.01)
    # without pings and a measured background, what was asked for
    asked = by("asked", 12, 1, rtt_ms=132.9, rate_bps=1e7, loss=0.01, background_bps=8e6)
    asked |= {"echoes": [], "transfers": []}
    row = limits(trial_rates(together([asked])), brokers=2, connection_window_bytes=np.inf).trials.iloc[0]
    assert (row.rtt_ms, row.by_window, row.by_loss) == pytest.approx((132.9, window, 2 * lossy))
    assert row.by_rate == pytest.approx((1e7 - 8e6 * 1500 / 1448) / (8 * BATCH * 1500 / 1448))
    assert "a single trial" in str(found.reached["loss"].warnings)
    assert "loses about" in str(found) and trials.losses["by loss"] < 10 and trials.losses["by rate"] == 0


@cache
def ratio_rows(factor=1.0):
    """Eight trials, for tests that do not change them."""
    rng, rows = np.random.default_rng(0), []
    for k in range(8):
        setting, rtt = (("internet", 132.9), ("private", 62.5))[(k + k // 2) % 2]
        level = 0.9 * 30 / (rtt / 1000) * (factor if setting == "private" else 1) * np.exp(rng.normal(0, 0.02))
        rows.append(by(setting, round(level), k + 1, rtt_ms=rtt, rate_bps=1e9))
    return trial_rates(together(rows))


@pytest.mark.parametrize("settings", [{"brokers": 0}, {"brokers": 2.5}, {"brokers": True}])
def test_wrong_counts_are_refused(settings):
    with pytest.raises(ParameterError):
        limits(ratio_rows(), **settings)


def test_trials_without_levels_are_refused():
    found = ratio_rows()
    found = replace(found, rates=found.rates.assign(partitions=None))
    with pytest.raises(ParameterError, match="no trial states"):
        limits(found, brokers=1)


def test_the_table_counts_every_trial():
    found = limits(ratio_rows(), brokers=1)
    assert found.table().n_trials.sum() == 8 and found._repr_html_()


def test_trials_that_are_not_in_use_are_reported():
    rows = [trial(k, "internet", 100 + k) for k in (1, 2, 3)]
    for row in rows[0]["batches"]:
        row["batches"] = row["records"] = row["bytes"] = 0
    found = limits(trial_rates(together(rows)), brokers=1)
    assert len(found.trials) == 2 and "1 trial left out" in str(found)
    assert "left out" not in str(limits(trial_rates(together(rows[1:])), brokers=1))
