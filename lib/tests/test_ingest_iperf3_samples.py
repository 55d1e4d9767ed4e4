"""iperf3: every sample, and the shared files in detail."""

import json
from pathlib import Path

import pandas as pd
import pytest
from iperf3_recorded import FOLDER, as_tables
from reading import read_iperf3

from wanbench.errors import RawDataError
from wanbench.read.ingest.rows import core as core_columns

SAMPLES = sorted([*FOLDER.glob("*.json"), *FOLDER.glob("*.txt")])
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "iperf3"


def expected(path, columns):
    """A table from its CSV, exact."""
    types = {column.name: "str" if column.type == "time" else column.dtype for column in columns}
    frame = pd.read_csv(path, dtype=types)
    for column in columns:
        if column.type == "time":
            frame[column.name] = pd.to_datetime(frame[column.name], utc=True, format="ISO8601")
        frame[column.name] = frame[column.name].astype(column.dtype)
    return frame


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_sample(sample):
    refused = sample.with_suffix(".refused")
    if refused.exists():
        line_number, message = refused.read_text().rstrip("\n").split("\n")
        with pytest.raises(RawDataError) as error:
            read_iperf3(sample)
        assert (str(error.value.line_number), error.value.expected) == (line_number, message)
        assert error.value.path == str(sample)
        return
    transfers, intervals = read_iperf3(sample)
    for core, part, columns in (
        (transfers, ".transfers.csv", core_columns("transfers")),
        (intervals, ".intervals.csv", core_columns("intervals")),
    ):
        pd.testing.assert_frame_equal(core, expected(sample.with_suffix(part), columns), check_exact=True)
    as_tables(transfers, intervals)


# What each shared file says, read off by eye: file, then for each direction what its row must hold.
SHARED_FACTS = {
    "v3.1.7_tcp_1s": [
        {"direction": "forward", "bytes": 1564999680, "throughput_bps": 6.256601e9, "retransmits": 6,
         "min_rtt_ms": 0.105, "max_rtt_ms": 0.159, "max_cwnd_bytes": 1309660, "tool_version": "3.1.7"},
    ],
    "v3.12_refused": [
        {"direction": None, "throughput_bps": None, "protocol": None,
         "error": "unable to connect to server: Connection refused"},
    ],
    "v3.12_tcp_1s": [
        {"direction": "forward", "throughput_bps": 13526681512.329863, "sent_throughput_bps": 13572744073.218216,
         "duration_s": 2.000225, "congestion_control": "bbr", "cpu_remote_percent": 31.9799989401558},
    ],
    "v3.16_interrupted": [
        {"direction": "forward", "throughput_bps": None, "bytes": None, "sent_throughput_bps": 20422875829.566219,
         "retransmits": 4, "cpu_remote_percent": None, "duration_s": 1.497168,
         "error": "interrupt - the client has terminated"},
    ],
    "v3.17.1_tcp_p4_reverse_omit1": [
        {"direction": "reverse", "streams": 4, "throughput_bps": 74347246563.3466, "retransmits": 7,
         "min_rtt_ms": None, "max_cwnd_bytes": None},
    ],
    "v3.21_bytes_mode": [
        {"direction": "forward", "bytes": 10485760, "throughput_bps": 83769472.8937319, "duration_s": 1.001392,
         "started_at_utc": pd.Timestamp("2026-11-21T07:11:45.276Z")},
    ],
    "v3.21_tcp_bidir": [
        {"direction": "forward", "throughput_bps": 18603706886.453182, "retransmits": 6, "min_rtt_ms": 0.064},
        {"direction": "reverse", "throughput_bps": 26007773662.000267, "retransmits": 15, "min_rtt_ms": None},
    ],
    "v3.21_udp20M": [
        {"direction": "forward", "protocol": "UDP", "throughput_bps": 20036684.268108089, "packets": 153,
         "lost_packets": 0, "jitter_ms": 0.00920335457886647, "target_bitrate_bps": 20e6, "mss_bytes": None},
    ],
    "v3.5_udp20M": [
        {"direction": "forward", "protocol": "UDP", "throughput_bps": 5013504 * 8 / 2.042963981628418,
         "sent_throughput_bps": 20053105.213241786, "packets": 153, "lost_packets": 0, "bytes": 5013504},
    ],
    "v3.7_tcp_bidir": [
        {"direction": "forward", "throughput_bps": 8233756536.7787685, "retransmits": 14, "duration_s": 2.027107},
        {"direction": "reverse", "throughput_bps": 5554004061.9464092, "retransmits": 7, "max_rtt_ms": None},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED_FACTS)
def test_shared_file(name):
    path = SHARED / f"{name}.json"
    if not path.exists():
        pytest.skip("the shared data is not here")
    transfers, intervals = read_iperf3(path)
    facts = SHARED_FACTS[name]
    assert len(transfers) == len(facts)
    for row, fact in zip(transfers.to_dict("records"), facts, strict=True):
        for column, value in fact.items():
            if value is None:
                assert pd.isna(row[column]), column
            else:
                assert row[column] == value, column
    raw = json.loads(path.read_text())
    assert len(intervals) == sum(len(interval["streams"]) for interval in raw["intervals"])
    assert intervals.bytes.sum() == sum(s["bytes"] for i in raw["intervals"] for s in i["streams"])
    assert intervals.omitted.sum() == sum(s["omitted"] for i in raw["intervals"] for s in i["streams"])
    as_tables(transfers, intervals)


def test_all_shared_files_are_tested():
    if not SHARED.exists():
        pytest.skip("the shared data is not here")
    assert set(SHARED_FACTS) == {path.stem for path in SHARED.glob("*.json")}


def test_seconds_that_are_omitted_give_no_congestion_window():
    document = json.loads((FOLDER / "v3.12_tcp_p3_omit1_cubic.json").read_text())
    for stream in document["end"]["streams"]:  # as of old versions: intervals alone state windows
        del stream["sender"]["max_snd_cwnd"]
    document["intervals"][0]["streams"][0]["snd_cwnd"] = 10**9
    transfers, intervals = read_iperf3(json.dumps(document).encode())
    assert intervals.omitted[0] and intervals.cwnd_bytes[0] == 10**9
    assert transfers.max_cwnd_bytes[0] == intervals.cwnd_bytes[~intervals.omitted].max() < 10**9


def test_repeated_members_are_the_reverse_direction():
    new, old = (read_iperf3(FOLDER / f"{n}.json")[0] for n in ("v3.12_tcp_bidir", "handmade-3.7_repeated-members"))
    pd.testing.assert_frame_equal(new.drop(columns="tool_version"), old.drop(columns="tool_version"))
    assert new.throughput_bps[0] != new.throughput_bps[1]


UDP = {"packets": 40, "lost_packets": 4, "jitter_ms": 0.5}
UDP |= {"bytes": 42_000, "seconds": 1.0, "bits_per_second": 336_000.0}


@pytest.mark.parametrize(("reverse", "remote", "received"), [(0, 0, None), (1, 0, 36_000), (0, 2.5, 36_000)])
def test_datagrams_are_received_ones_where_the_receiver_counted_them(reverse, remote, received):
    start = {"version": "iperf 3.6", "test_start": {"protocol": "UDP", "blksize": 1000, "reverse": reverse}}
    end = {"sum": UDP, "cpu_utilization_percent": {"remote_total": remote}}
    stopped = {} if remote else {"error": "interrupt - the client has terminated"}
    transfers, _ = read_iperf3(json.dumps({"start": start, "end": end, **stopped}).encode())
    row = transfers.loc[0]
    if received is None:
        assert row[["bytes", "throughput_bps", "lost_packets", "jitter_ms"]].isna().all()
    else:
        assert (row["bytes"], row.lost_packets) == (received, 4)
    assert row.packets == 40
