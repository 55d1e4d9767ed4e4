"""A total that its own intervals contradict is flagged; those that the tools really print are not."""

import json
from pathlib import Path

import pytest

from wanbench.read import ingest, plausibility

SAMPLES = Path(__file__).parent / "samples"
OMITTED = json.loads((SAMPLES / "iperf3" / "v3.12_tcp_p3_omit1_cubic.json").read_text())
WINDOW = "{} records sent, {} records/sec (10.00 MB/sec), 5.0 ms avg latency, {} ms max latency."
TOTAL = (
    "{} records sent, 9000.000000 records/sec (9.00 MB/sec), 5.00 ms avg latency, {} ms max latency, 4 ms 50th, "
    "9 ms 95th, 10 ms 99th, 11 ms 99.9th."
)


def flags(tmp_path, tool, text):
    path = tmp_path / "a.txt"
    path.write_text(text)
    read = ingest.read_files([path], tool)
    assert read["unread"].empty
    found = plausibility.check(read)
    return found[["table", "rule", "verdict", "column_name"]].values.tolist(), found


def with_total(share, reverse=False, sent=None):
    """The recorded test, its totals multiplied as if they counted that share of its omitted second too."""
    document = json.loads(json.dumps(OMITTED))
    document["start"]["test_start"]["reverse"] = int(reverse)
    end = document["end"]
    for part, times in ((end["sum_sent"], share if sent is None else sent), (end["sum_received"], share)):
        part["bytes"] = round(part["bytes"] * times)
        part["bits_per_second"] *= times
    return json.dumps(document)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_total_that_counts_omitted_seconds_is_impossible(tmp_path, reverse):
    column = "throughput_bps" if reverse else "sent_throughput_bps"
    shown, found = flags(tmp_path, "iperf3", with_total(1.04, reverse))
    assert shown == [["transfers", "summary", "impossible", column]]
    assert "-O" in found.cause[0] and found.value[0] == pytest.approx(1.04 * found.bound[0], rel=1e-3)
    assert flags(tmp_path, "iperf3", with_total(1.0, reverse))[0] == []
    assert flags(tmp_path, "iperf3", with_total(1.005, reverse))[0] == []


def test_the_other_end_may_receive_what_was_in_flight_and_no_omitted_second(tmp_path):
    shown, _ = flags(tmp_path, "iperf3", with_total(1.9, sent=1.0))
    assert shown == [["transfers", "summary", "impossible", "throughput_bps"]]
    assert flags(tmp_path, "iperf3", with_total(1.05, sent=1.0))[0] == []


def test_totals_with_too_few_intervals_are_not_judged(tmp_path):
    document = json.loads(with_total(1.5, False))
    document["intervals"] = document["intervals"][:2]
    assert flags(tmp_path, "iperf3", json.dumps(document))[0] == []


@pytest.mark.parametrize(
    ("records", "longest", "wrong"),
    [(90_000, 30.0, []), (40_000, 30.0, ["records"]), (90_000, 20.0, ["max_latency_ms"])],
)
def test_a_producer_sent_what_its_windows_sent(tmp_path, records, longest, wrong):
    windows = [WINDOW.format(30_000, 6000.0, peak) for peak in ("25.0", "30.0")]
    text = "\n".join([*windows, TOTAL.format(records, f"{longest:.2f}")]) + "\n"
    shown, _ = flags(tmp_path, "kafka_load", text)
    assert [column for *_, column in shown] == wrong
    assert all(row[:3] == ["producers", "summary", "impossible"] for row in shown)


@pytest.mark.parametrize(("p99_ms", "wrong"), [(30.0, False), (25.0, False), (8.0, True)])
def test_a_runs_quantile_is_not_below_all_of_its_windows(tmp_path, p99_ms, wrong):
    members = {"workload": "w", "driver": "d", "publishRate": [100.0, 100.0], "consumeRate": [100.0, 100.0]}
    members |= {"publishLatency99pct": [20.0, 40.0], "aggregatedPublishLatency99pct": p99_ms}
    shown, _ = flags(tmp_path, "openmessaging", json.dumps(members))
    assert shown == ([["quantiles", "summary", "impossible", "latency_ms"]] if wrong else [])


def test_recorded_runs_agree_with_their_intervals():
    for tool, paths in (
        ("iperf3", (SAMPLES / "iperf3").glob("*.json")),
        ("kafka_load", (SAMPLES / "kafka_perf").glob("*.txt")),
    ):
        found = ingest.read_files(sorted(paths), tool)
        raised = plausibility.check(found)
        assert not (raised.rule == "summary").any()
