"""Folders of files that other scripts left: names distinguished, readers of ingest used, nothing dropped."""

import gzip
import lzma
import os
import shutil
from pathlib import Path

import pytest

from wanbench.errors import ParameterError, RawDataError
from wanbench.read import importers, ingest

SAMPLES = Path(__file__).parent / "samples"
PING = SAMPLES / "ping" / "busybox-1.35_loss.txt"
IPERF3 = SAMPLES / "iperf3" / "v3.12_tcp_bidir.json"
REFUSED = b'{"start": {"version": "iperf 3.12"}, "end": {}, "error": "Connection refused"}'
A, B = "aws:us-east-1", "gcp:us-west1"


def folder(tmp_path, **files):
    """A folder of files; in their names, __ stands for / and DOT for a point."""
    top = tmp_path / "mine"
    for name, content in files.items():
        path = top / name.replace("__", "/").replace("DOT", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
    return top


def test_ping_and_iperf3_of_one_test(tmp_path):
    names = {"aws-us-east-1_gcp-us-west1_pingDOTtxt": PING, "aws-us-east-1_gcp-us-west1_iperf3DOTtxt": IPERF3}
    top = folder(tmp_path, **names)
    found = importers.read_folder(top)
    [test] = found["tests"].to_dict("records")
    assert (test["from_region"], test["to_region"], test["run_id"]) == (A, B, "mine")
    assert test["test_id"] == "aws-us-east-1_gcp-us-west1_*.txt" and test["outcome"] == "done"
    assert test["started_at_utc"] == found["transfers"].started_at_utc.min()
    assert len(found["echoes"]) == 6 and len(found["transfers"]) == 2 and len(found["intervals"]) == 4
    [pair, back] = ingest.summarise_pairs(found).to_dict("records")
    assert (pair["n_tests"], pair["n_echoes"], pair["n_lost"]) == (1, 6, 2)
    assert pair["throughput_bps"] > 0 and back["throughput_bps"] > 0, "the file has both directions"
    assert found["sources"].sha256.str.fullmatch("[0-9a-f]{64}").all()
    assert sorted(found["sources"].bytes) == sorted([PING.stat().st_size, IPERF3.stat().st_size])


def test_folders_runs_settings_and_names_of_regions(tmp_path):
    listed = b"[" + IPERF3.read_bytes() + b"]"
    top = folder(tmp_path, monday__small__FRA__IADDOTjson=listed, tuesday__large__IAD__us_west1DOTlog=PING)
    names = {"FRA": "aws:eu-central-1", "IAD": A, "us_west1": B}
    found = importers.read_folder(top, "{run}/{setting}/{from}/{to}.*", regions=names)
    tests = found["tests"].set_index("run_id")
    assert tests.from_region.to_dict() == {"monday": "aws:eu-central-1", "tuesday": A}
    assert tests.setting.to_dict() == {"monday": "small", "tuesday": "large"}
    assert len(found["transfers"]) == 2 and len(found["echoes"]) == 6, "kinds are told by content"


def test_plain_text_of_iperf3_is_told_by_content(tmp_path):
    verbose = SAMPLES / "iperf3" / "v3.12_text_tcp_p2_omit1_verbose.txt"
    found = importers.read_folder(folder(tmp_path, **{"aws-us-east-1_gcp-us-west1DOTtxt": verbose}), "{from}_{to}.txt")
    assert found["transfers"].throughput_bps.tolist() == [159e6] and len(found["intervals"]) == 6


def test_a_regular_expression(tmp_path):
    top = folder(tmp_path, **{"GCP.us-east4-to-AWS.us-east-1.jsonDOTtxt": IPERF3})
    found = importers.read_folder(
        top, r"(?P<from_cloud>\w+)[.](?P<from>.+)-to-(?P<to_cloud>\w+)[.](?P<to>.+)[.]json[.]txt"
    )
    assert found["tests"][["from_region", "to_region"]].values.tolist() == [["gcp:us-east4", A]]


def test_what_cannot_be_read_is_kept_in_unread(tmp_path):
    good = "aws-us-east-1_gcp-us-west1_pingDOTtxt"
    others = {
        "READMEDOTmd": b"hello",
        "aws-us-east-1_atlantis_pingDOTtxt": PING,
        "aws-us-east-1_gcp-us-west1_flentDOTtxt": PING,
        "gcp-us-west1_aws-us-east-1_pingDOTtxt": b"nothing of ping's",
        "gcp-us-west1_aws-us-east-1_iperf3DOTtxt": IPERF3,
    }
    top = folder(tmp_path, **{good: PING}, **others)
    os.mkfifo(top / "aws-us-east-1_aws-eu-west-1_ping.txt")
    found = importers.read_folder(top)
    unread = {Path(row.path).name: row.expected for row in found["unread"].itertuples()}
    assert unread["README.md"] == "a name like {from}_{to}_{kind}.txt"
    assert unread["aws-us-east-1_atlantis_ping.txt"].startswith("a region (region is ")
    assert unread["aws-us-east-1_gcp-us-west1_flent.txt"] == "a kind: ping or iperf3"
    assert unread["aws-us-east-1_aws-eu-west-1_ping.txt"] == "a file that can be read"
    assert len(unread) == 5 and len(found["sources"]) == 2
    tests = found["tests"].set_index("from_region")
    assert tests.outcome.to_dict() == {A: "done", B: "failed"}
    assert tests.reason[B] == "the file could not be read" and tests.failed_experiment[B] == "ping"


def several(*hosts):
    header, *rest = PING.read_bytes().split(b"\n")
    return b"\n$ \n".join(b"\n".join([header.replace(b"10.9.0.2 ", host + b" "), *rest]) for host in hosts)


def test_a_file_may_hold_several_pings_of_its_pair_but_of_no_other(tmp_path):
    names = "aws-us-east-1_gcp-us-west1_pingDOTtxt", "gcp-us-west1_aws-us-east-1_pingDOTtxt"
    both = several(b"one.example.org", b"two.example.org")
    found = importers.read_folder(folder(tmp_path, **{names[0]: several(b"10.9.0.2", b"10.9.0.2"), names[1]: both}))
    assert found["echoes"].ping.tolist() == [0] * 6 + [1] * 6 and set(found["echoes"].from_region) == {A}
    [unread] = found["unread"].to_dict("records")
    assert unread["found"] == "one.example.org, two.example.org"
    assert unread["expected"] == "pings of one host, because the file's name has one pair of regions"
    assert found["tests"].set_index("from_region").outcome.to_dict() == {A: "done", B: "failed"}


@pytest.mark.parametrize("pattern", ["{from}_{to}_{kind}.txt.*", "{from}_{to}_*.txt.*"])
@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_compressed_files_are_read_as_they_come(tmp_path, pattern, compress):
    name = "aws-us-east-1_gcp-us-west1_pingDOTtxtDOTz"
    found = importers.read_folder(folder(tmp_path, **{name: compress(PING.read_bytes())}), pattern)
    assert len(found["echoes"]) == 6 and not len(found["unread"])


def test_a_refused_transfer_is_a_failed_test(tmp_path):
    top = folder(tmp_path, **{"aws-us-east-1_gcp-us-west1_iperf3DOTtxt": REFUSED})
    found = importers.read_folder(top)
    assert found["tests"][["outcome", "reason"]].values.tolist() == [["failed", "Connection refused"]]
    [pair] = ingest.summarise_pairs(found).to_dict("records")
    assert pair["n_tests"] == pair["n_transfers"] == 0


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{from}.txt", r"with from and to, and no other names than from, to, from_cloud"),
        ("{from}_{to}_{host}", "no other names than"),
        ("(?P<from>.+)(", "no other names than from, to.*unterminated|missing"),
        ("{from}_{}_{to}", "missing group name"),
        (None, "allowed: a template or a regular expression"),
        (["{from}_{to}"], "allowed: a template or a regular expression"),
    ],
)
def test_patterns_that_tell_no_pair(tmp_path, pattern, message):
    with pytest.raises(ParameterError, match=message):
        importers.read_folder(folder(tmp_path, a=b""), pattern)


def test_folders_that_cannot_be_read(tmp_path):
    with pytest.raises(RawDataError, match="a folder with files, found 'nothing'"):
        importers.read_folder(tmp_path / "none")
    with pytest.raises(RawDataError, match=r"a name like .* \(no file of 1 can be read\)"):
        importers.read_folder(folder(tmp_path, a=b""))
    with pytest.raises(ParameterError, match="allowed: a mapping of title, address"):
        importers.read_folder(tmp_path, about={"author": "me"})


def test_links_to_folders_are_not_followed(tmp_path):
    top = folder(tmp_path, **{"aws-us-east-1_gcp-us-west1_pingDOTtxt": PING})
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(PING, other / "gcp-us-west1_aws-us-east-1_ping.txt")
    (top / "link").symlink_to(other)
    (top / "loop").symlink_to(top)
    assert len(importers.read_folder(top)["tests"]) == 1


def test_a_source_that_is_told(tmp_path):
    top = folder(tmp_path, **{"aws-us-east-1_gcp-us-west1_pingDOTtxt": PING})
    about = {"title": "My pings", "version": "2025-01-01", "licence": "CC0-1.0"}
    [source] = importers.read_folder(top, about=about)["sources"].to_dict("records")
    assert {name: source[name] for name in about} == about


def test_a_folder_called_cut_is_no_cut(tmp_path, monkeypatch):
    top = folder(tmp_path, **{"cut__aws-us-east-1_gcp-us-west1_pingDOTtxt": PING})
    monkeypatch.chdir(top)
    [pair] = ingest.summarise_pairs(importers.read_folder("cut")).to_dict("records")
    assert pair["n_echoes"] == 6
