"""What a link may be, the queue it gets, and links from distances and matrices."""

import dataclasses
import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from wanbench.errors import ParameterError, RawDataError
from wanbench.measure.labs import MIN_RTT_MS, geodesic_links, matrix_links
from wanbench.measure.links import MIN_QUEUE_BYTES, LinkSettings, Step, queue_in_bytes, read_schedule
from wanbench.regions import distance_km, light_rtt_ms


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"delay_ms": -1}, "delay_ms is -1"),
        ({"delay_ms": math.nan}, "delay_ms is nan"),
        ({"delay_ms": "10"}, "delay_ms is '10'"),
        ({"delay_ms": True}, "delay_ms is True"),
        ({"delay_ms": 10, "jitter_ms": 5.1}, "half of delay_ms"),
        ({"delay_ms": 10, "loss": 1.5}, "loss is 1.5; allowed: a number from 0 to 1"),
        ({"delay_ms": 10, "rate_bps": 0}, "rate_bps is 0"),
        ({"delay_ms": 10, "queue_bytes": 0}, "queue_bytes is 0"),
        ({"delay_ms": 10, "jitter_correlation_s": 0}, "jitter_correlation_s is 0"),
        ({"delay_ms": 10, "loss": 0.1, "mean_loss_burst": 0.5}, "mean_loss_burst is 0.5"),
        ({"delay_ms": 10, "queue_packets": 0}, "queue_packets is 0"),
        ({"delay_ms": 10, "queue_packets": 2.5}, "queue_packets is 2.5; allowed: a whole number"),
        ({"delay_ms": 10, "mtu_bytes": 1400.5}, "mtu_bytes is 1400.5; allowed: a whole number"),
        ({"delay_ms": 10, "codel_target_ms": 0}, "codel_target_ms is 0"),
        ({"delay_ms": 10, "ecn": True}, "ecn is True without codel_target_ms"),
        ({"delay_ms": 10, "schedule": [5]}, "step 1 of the schedule"),
        ({"delay_ms": 10, "schedule": [Step(1), Step(1)]}, "at_s of step 2 of the schedule is 1"),
        ({"delay_ms": 10, "repeat_s": 1}, "repeat_s is 1"),
        ({"delay_ms": 10, "schedule": [Step(0), Step(2)], "repeat_s": 2}, "repeat_s is 2"),
        ({"delay_ms": 10, "jitter_ms": 4, "schedule": [Step(1, delay_ms=6)]}, "jitter_ms is 4"),
        ({"delay_ms": 10, "mean_loss_burst": 2, "schedule": [Step(1, loss=0.8)]}, "loss is 0.8"),
        ({"delay_ms": 10, "rate_bps": 1e6, "burst_bytes": 1e6}, "burst_rate_bps and burst_bytes"),
        ({"delay_ms": 10, "rate_bps": 1e7, "burst_rate_bps": 1e6, "burst_bytes": 1e6}, "both, a rate_bps of at most"),
        ({"delay_ms": 10, "loss": 0.8, "mean_loss_burst": 2}, "loss is 0.8 with mean_loss_burst 2"),
    ],
)
def test_settings_out_of_range_fail(settings, named):
    with pytest.raises(ParameterError, match=named):
        LinkSettings(**settings)


def test_settings_at_their_limits_pass():
    LinkSettings(delay_ms=0, loss=1.0, rate_bps=1_000, queue_bytes=1)
    LinkSettings(delay_ms=10, jitter_ms=5)


def test_numbers_of_numpy_can_be_kept_in_a_manifest():
    link = LinkSettings(np.int64(20), np.float32(2), np.float64(0.5), np.int64(10**6), np.int32(3000))
    assert link == LinkSettings(20, 2, 0.5, 10**6, 3000)
    assert json.loads(json.dumps(dataclasses.asdict(link)))["queue_bytes"] == 3000


def test_a_queue_left_open_is_one_bandwidth_delay_product_of_both_ways():
    assert queue_in_bytes(LinkSettings(100, rate_bps=1e9), back_delay_ms=60) == 20_000_000


def test_a_queue_left_open_is_never_shorter_than_twenty_milliseconds_or_64_kib():
    assert queue_in_bytes(LinkSettings(1, rate_bps=300e6)) == 750_000
    assert queue_in_bytes(LinkSettings(1, rate_bps=1e6)) == MIN_QUEUE_BYTES


def test_a_queue_that_was_asked_for_is_taken_and_without_a_rate_there_is_none():
    assert queue_in_bytes(LinkSettings(100, rate_bps=1e9, queue_bytes=3000)) == 3000
    assert queue_in_bytes(LinkSettings(100, queue_bytes=3000)) is None


def test_geodesic_links_take_half_the_inflated_light_rtt_each_way():
    regions = ["aws:eu-west-1", "gcp:us-east1", "azure:westeurope"]
    links = geodesic_links(regions, path_inflation=2.0, rate_bps=1e8)
    assert len(links) == 6
    for pair, settings in links.items():
        expected = (light_rtt_ms(distance_km(*pair)) * 2.0) / 2
        assert settings.delay_ms == pytest.approx(expected)
        assert settings.rate_bps == 1e8


def test_regions_in_one_place_are_not_without_delay():
    links = geodesic_links(["aws:eu-central-1", "gcp:europe-west3"], jitter_ms=1.0)
    for settings in links.values():
        assert settings.delay_ms >= MIN_RTT_MS / 2
        assert settings.jitter_ms <= settings.delay_ms / 2


@pytest.mark.parametrize("wrong", [{"path_inflation": 0.9}, {"path_inflation": math.nan}])
def test_paths_faster_than_light_fail(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        geodesic_links(["aws:eu-west-1", "gcp:us-east1"], **wrong)


def test_a_matrix_in_one_direction_holds_for_both_and_in_two_for_each():
    links = matrix_links({("a", "b"): 40.0, ("a", "c"): 10.0, ("c", "a"): 20.0})
    assert {pair: settings.delay_ms for pair, settings in links.items()} == {
        ("a", "b"): 20.0,
        ("b", "a"): 20.0,
        ("a", "c"): 5.0,
        ("c", "a"): 10.0,
    }


def test_a_matrix_may_be_a_table():
    table = pd.DataFrame({"from_region": ["a"], "to_region": ["b"], "rtt_ms": [40.0]})
    assert matrix_links(table) == matrix_links({("a", "b"): 40.0})


@pytest.mark.parametrize(
    ("matrix", "named"),
    [
        ({("a", "a"): 1.0}, "two different regions"),
        ({("a", "b"): -1.0}, "rtt_ms of a to b is -1.0"),
        ({("a", "b"): math.nan}, "rtt_ms of a to b is nan"),
        (pd.DataFrame({"from_region": ["a"], "to_region": ["b"]}), "lacks column rtt_ms"),
        (pd.DataFrame({"from_region": ["a", "a"], "to_region": ["b", "b"], "rtt_ms": [1.0, 2.0]}), "a, b twice"),
    ],
)
def test_a_matrix_that_cannot_be_meant_fails(matrix, named):
    with pytest.raises(ParameterError, match=named):
        matrix_links(matrix)


def test_children_of_the_supervisor_do_not_inherit_its_real_time_priority():
    # A child at this priority would stop a machine of one processor until it ends.
    code = (
        "import json, subprocess, sys\n"
        "from wanbench.measure.links.lab_supervisor import hurry\n"
        "granted = hurry(locked_later=False)\n"
        "child = [sys.executable, '-c', 'import os; print(os.sched_getscheduler(0) == os.SCHED_OTHER)']\n"
        "print(json.dumps([granted, subprocess.run(child, capture_output=True, text=True).stdout.strip()]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    granted, is_ordinary = json.loads(done.stdout)
    if not granted["real_time_priority"]:
        pytest.skip("the kernel grants no real-time priority here")
    assert is_ordinary == "True"


def test_the_supervisor_loads_nothing_large():
    # It locks its memory and starts with every lab.
    code = "import sys, wanbench.measure.links.lab_supervisor as _; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split()
    assert not {b"numpy", b"pandas", b"scipy", b"plotly"} & set(loaded)


def test_a_schedule_is_read_from_a_file(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("at_s, rate_bps,delay_ms\n0,1e6,20\n0.5,,30\n2,2e6,\n")
    steps = read_schedule(path)
    assert steps == (Step(0, 20, None, 1e6), Step(0.5, 30), Step(2, rate_bps=2e6))
    assert queue_in_bytes(LinkSettings(500, schedule=steps)) == 250_000, "at the highest rate"


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ("", 1, "expected at_s and"),
        ("at_s\n1\n", 1, "expected at_s and"),
        ("delay_ms,loss\n1,0\n", 1, "expected at_s and"),
        ("at_s,delay_ms,delay_ms\n1,0,0\n", 1, "expected at_s and"),
        ("at_s,delay_ms,delay\n1,0,0\n", 1, "found 'at_s,delay_ms,delay'"),
        ("at_s,delay_ms\n", None, "no row"),
        ("at_s,delay_ms\n0,1\n1\n", 3, "found '1'"),
        ("at_s,delay_ms\n0,1\nnext,2\n", 3, "found 'next,2'"),
        ("at_s,delay_ms\n,1\n", 2, "found ',1'"),
        ("at_s,loss\n0,1.5\n", 2, "loss is 1.5"),
        ("at_s,loss\n0,nan\n", 2, "loss is nan"),
        ("at_s,loss\n1,0\n1,0.5\n", 3, "at_s of step 2"),
    ],
)
def test_a_file_that_is_no_schedule_fails_with_its_line(tmp_path, text, line, named):
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(RawDataError, match=named) as error:
        read_schedule(path)
    assert error.value.line_number == line
