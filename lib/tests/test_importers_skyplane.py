"""Skyplane's grids, read from made-up rows, and joined."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wanbench.errors import RawDataError
from wanbench.read import importers, ingest

GRIDS = Path(__file__).resolve().parents[3] / "shared" / "data" / "grids"
ENDS = "src_region,src_tier,src_instance_class,dst_region,dst_tier,dst_instance_class"
LATENCY = ENDS + ",min_rtt,avg_rtt,max_rtt,mdev_rtt"
THROUGHPUT = (
    ENDS
    + ",iperf3_connections,iperf3_runtime,tag,stdout_path,stderr_path,throughput_sent,throughput_received"
    + ",cpu_utilization,success"
)
OUT = "/home/u/logs/throughput_grid/2022.01.29_22.19_a-b_5s_64c/raw_iperf3_logs/x.stdout"


def grid(folder, *lines, name="latency.csv"):
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return importers.read_skyplane(path)


def latency(tiers, rtt, mdev="0.2"):
    return f"gcp:us-east1-b,{tiers[0]},n2-standard-4,aws:eu-west-2,{tiers[1]},m5.large,{rtt},{rtt + 1},{rtt + 2},{mdev}"


def throughput(received, success="True"):
    return (
        f"gcp:us-east1-b,PREMIUM,n2-standard-32,aws:eu-west-2,PREMIUM,m5.8xlarge,64,5,t,{OUT},e,6e9,{received},"
        f"35.5,{success}"
    )


def test_latency(tmp_path):
    found = grid(tmp_path, LATENCY, latency(("PREMIUM", "PREMIUM"), 90), latency(("STANDARD", "PREMIUM"), 95, ""))
    [first, second] = found["pings"].to_dict("records")
    assert (first["from_region"], first["to_region"]) == ("gcp:us-east1", "aws:eu-west-2")
    rtts = ["min_rtt_ms", "mean_rtt_ms", "max_rtt_ms", "sd_rtt_ms"]
    assert [first[name] for name in rtts] == [90, 91, 92, 0.2] and np.isnan(second["sd_rtt_ms"])
    assert pd.isna(first["n_sent"]) and pd.isna(first["n_lost"])
    assert found["tests"].setting.tolist() == [
        "PREMIUM n2-standard-4 to PREMIUM m5.large",
        "STANDARD n2-standard-4 to PREMIUM m5.large",
    ]
    assert found["tests"].test_id.tolist() == ["latency.csv:2", "latency.csv:3"]
    assert found["tests"].started_at_utc.isna().all() and len(found["transfers"]) == 0


def test_throughput(tmp_path):
    lines = throughput(5e9), throughput("", "False"), throughput(1e9, "perhaps"), throughput(-1)
    found = grid(tmp_path, THROUGHPUT, *lines, name="throughput.csv")
    [good, bad] = found["transfers"].to_dict("records")
    assert (good["throughput_bps"], good["sent_throughput_bps"], good["streams"]) == (5e9, 6e9, 64)
    assert (good["duration_s"], good["cpu_local_percent"], good["protocol"]) == (5, 35.5, "TCP")
    assert bad["error"] == "the grid reports no success" and np.isnan(bad["throughput_bps"])
    assert found["tests"].outcome.tolist() == ["done", "failed"]
    assert found["tests"].run_id.unique().tolist() == ["2022.01.29_22.19_a-b_5s_64c"]
    assert found["unread"].line_number.tolist() == [4, 5] and len(found["pings"]) == 0
    [pair] = ingest.summarise_pairs(found).to_dict("records")
    assert (pair["n_tests"], pair["n_transfers"], pair["throughput_bps"]) == (1, 1, 5e9)


def test_success_needs_a_throughput_and_a_throughput_success(tmp_path):
    found = grid(tmp_path, THROUGHPUT, throughput(""), throughput(5e9, "False"), throughput(5e9, "True"))
    assert found["tests"].outcome.tolist() == ["failed", "failed", "done"]
    assert found["tests"].reason[0] == "no success, or no throughput"
    [pair] = ingest.summarise_pairs(found).to_dict("records")
    assert (pair["n_tests"], pair["n_transfers"]) == (1, 1)


def test_the_older_spelling_and_no_tiers(tmp_path):
    header = THROUGHPUT.replace("throughput_received", "throughput_recieved")
    row = throughput(5e9).replace("PREMIUM,n2-standard-32", ",").replace("PREMIUM,m5.8xlarge", ",")
    found = grid(tmp_path, header, row, name="throughput.csv")
    assert found["transfers"].throughput_bps[0] == 5e9 and found["tests"].setting.isna().all()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("a,b", "1,2"), "latency.csv:1: expected the columns src_region, dst_region .*found 'columns a, b'"),
        ((ENDS, "gcp:a-a,,,aws:b,,"), "expected min_rtt, avg_rtt, max_rtt, mdev_rtt; or throughput_sent"),
        ((LATENCY, latency("AB", 90).replace("gcp:", "")), "src_region: a region, such as aws:us-east-1"),
    ],
)
def test_what_is_no_grid(tmp_path, lines, message):
    with pytest.raises(RawDataError, match=message):
        grid(tmp_path, *lines)


@pytest.mark.skipif(not GRIDS.is_dir(), reason="the published grids are not on this machine")
def test_the_published_grids():
    found = importers.read_skyplane(GRIDS / "skyplane_latency_2022-04-16.csv")
    assert len(found["pings"]) == len(found["tests"]) == 8010 and len(found["unread"]) == 0
    pairs = ingest.summarise_pairs(found, setting="PREMIUM * to PREMIUM *")
    assert len(pairs) == 4692 and pairs.n_tests.eq(1).all() and pairs.distance_km.notna().all()
    found = importers.read_skyplane(GRIDS / "skyplane_profiles_throughput_2022-01-30.csv")
    assert len(found["transfers"]) == 7053 and len(found["unread"]) == 0
    assert found["transfers"].throughput_bps.max() == pytest.approx(26.44e9, rel=1e-3)
    assert found["sources"].licence[0] == "Apache-2.0"
