"""Outputs of netperf, flent, Globalping, mtr and RIPE Atlas, each with what must be read of it."""

import bz2
import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from wanbench.errors import RawDataError
from wanbench.read import ingest
from wanbench.read.ingest import flent, globalping, mtr, netperf, ripe_atlas

SAMPLES = Path(__file__).parent / "samples"
READERS = {tool.__name__.rpartition(".")[2]: tool.read for tool in (netperf, flent, globalping, mtr, ripe_atlas)}
FILES = sorted(
    path for name in READERS for path in (SAMPLES / name).iterdir() if path.suffix in (".txt", ".flent", ".json")
)


def known(frame):
    """The columns that have values, as text that can be compared."""
    frame = pd.DataFrame(frame).dropna(axis=1, how="all")
    return frame.to_csv(index=False, float_format="%.9g", lineterminator="\n")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_samples(path):
    refused = path.with_suffix(".refused")
    if refused.exists():
        line, expected = refused.read_text().rstrip("\n").split(": ", 1)
        with pytest.raises(RawDataError) as error:
            READERS[path.parent.name](path)
        assert (str(error.value.line_number), error.value.expected) == (line, expected)
        return
    found = READERS[path.parent.name](path)
    expected = {name: path.with_suffix(f".{name}.csv") for name in ("pings", "transfers", "echoes", "unread")}
    assert set(found) == {name for name, file in expected.items() if file.exists()}
    for name, frame in found.items():
        assert known(frame) == expected[name].read_text(), known(frame)


def test_probes_and_targets_are_the_regions_and_what_failed_is_unread():
    good, bad = SAMPLES / "globalping" / "handmade_probes.json", SAMPLES / "mtr" / "handmade.json"
    out = ingest.read_files([good, bad], "globalping")
    assert set(out["echoes"].from_region) == {"Example Net:Falkenstein", "Other Net:Paris"}
    assert set(out["echoes"].to_region) == {"cdn.example.org"} and set(out["echoes"].source_file) == {str(good)}
    assert out["unread"].path.value_counts().to_dict() == {str(good): 2, str(bad): 1}
    atlas = ingest.read_files([SAMPLES / "ripe_atlas" / "handmade_list.json"], "ripe_atlas")
    assert atlas["echoes"].received_at_s[0] == 1767607200 + 0.0811 and len(atlas["unread"]) == 1
    [row] = ingest.read_files([bad], "mtr")["pings"].to_dict("records")
    assert (row["from_region"], row["to_region"], row["n_sent"], row["n_lost"]) == ("probe-a", "h.example.org", 10, 1)


def test_a_mean_rtt_is_one_over_the_rate_of_transactions():
    asked = netperf.read(SAMPLES / "netperf" / "v2.7.0_tcp_rr_keyval.txt")["pings"].mean_rtt_ms[0]
    text = (SAMPLES / "netperf" / "v2.7.0_tcp_rr_keyval.txt").read_text()
    rate = float(text.partition("THROUGHPUT=")[2].partition("\n")[0])
    assert asked == pytest.approx(1000 / rate, rel=0.005)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lambda data: data.decode().encode("utf-16")])
@pytest.mark.parametrize("name", ["netperf/v2.7.0_tcp_rr.txt", "flent/v2.1.1_ping.flent"])
def test_compressed_files_and_utf_16_are_read_too(name, compress):
    data = (SAMPLES / name).read_bytes()
    read = READERS[name.partition("/")[0]]
    pd.testing.assert_frame_equal(read(compress(data))["pings"], read(data)["pings"])


@pytest.mark.parametrize("tool", ["netperf", "flent", "mtr"])
def test_files_are_read_by_name_and_what_cannot_be_is_unread(tool):
    paths = [path for path in FILES if path.parent.name == tool]
    found = ingest.read_files(paths, tool)
    n_refused = sum(path.with_suffix(".refused").exists() for path in paths)
    assert len(found["unread"]) == n_refused and found["pings"].source_file.str.contains(tool).all()


def test_the_rate_is_the_receivers():
    text = (SAMPLES / "netperf" / "v2.7.0_tcp_stream_keyval.txt").read_text()
    found = netperf.read(text.replace("RECV_THROUGHPUT=14247.35", "RECV_THROUGHPUT=14000.00").encode())
    [row] = found["transfers"].to_dict("records")
    assert (row["throughput_bps"], row["sent_throughput_bps"]) == (14_000e6, 14_247.25e6)


def test_a_receiver_that_does_not_know_what_arrived_leaves_the_loss_unknown():
    text = (SAMPLES / "netperf" / "v2.7.0_udp_stream.txt").read_text()
    *head, last = text.rstrip("\n").split("\n")
    size, seconds, _, rate = last.split()
    found = netperf.read("\n".join([*head, f"{size}  {seconds}  -1  {rate}", ""]).encode())["transfers"]
    assert found.lost_packets.isna().all() and found.packets.notna().all()


SAMPLE = json.loads((SAMPLES / "flent" / "v2.1.1_tcp_upload.flent").read_text())


def with_series(**about):
    """The sample with its transfer's metadata changed, and without its values."""
    metadata = SAMPLE["metadata"]
    series = metadata["SERIES_META"] | {"TCP upload": metadata["SERIES_META"]["TCP upload"] | about}
    changed = SAMPLE | {"metadata": metadata | {"SERIES_META": series}, "raw_values": {}}
    return json.dumps(changed).encode()


def test_a_series_without_values_is_a_row_without_them():
    found = flent.read(with_series(MEAN_VALUE=None))
    assert found["transfers"].throughput_bps.isna().all() and found["transfers"].error[0] == "no values"
    assert found["pings"].mean_rtt_ms.isna().all() and len(found["pings"]) == 1


def test_a_hosts_name_says_nothing_of_the_direction():
    found = flent.read(with_series(COMMAND="netperf -H download.example.org -t TCP_STREAM"))
    assert found["transfers"].direction.tolist() == ["forward"]
    found = flent.read(with_series(COMMAND="netperf -H example.org -t TCP_MAERTS"))
    assert found["transfers"].direction.tolist() == ["reverse"]


def test_what_flent_computed_of_other_series_is_not_read():
    computed = {"TCP totals": {"UNITS": "Mbits/s", "RUNNER": "SumRunner", "MEAN_VALUE": 5.0}}
    changed = SAMPLE["metadata"] | {"SERIES_META": SAMPLE["metadata"]["SERIES_META"] | computed}
    found = flent.read(json.dumps(SAMPLE | {"metadata": changed}).encode())
    assert len(found["transfers"]) == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "a data file of flent, in JSON"),
        ("[" * 100_000, "a data file of flent, in JSON"),
        ("[1]", "a data file of flent, in JSON"),
        ("{}", "flent's metadata with SERIES_META, and raw_values"),
        (json.dumps(SAMPLE | {"raw_values": {"TCP upload": [1]}}), "objects with a number val"),
        (json.dumps(SAMPLE | {"metadata": {"SERIES_META": {}}}), "a series in ms or Mbits/s"),
        (with_series(MEAN_VALUE="fast").decode(), "metadata as flent writes it"),
        (with_series(BYTES_RECVD="many").decode(), "metadata as flent writes it"),
    ],
)
def test_what_is_no_file_of_flent_is_refused(content, expected):
    with pytest.raises(RawDataError) as error:
        flent.read(content.encode())
    assert error.value.expected == expected
