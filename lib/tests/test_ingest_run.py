"""A run folder, and loose files, as tables; pairs out of them."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wanbench import regions, tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.extensions import extensions
from wanbench.read import ingest
from wanbench.read.ingest import ping, readers
from wanbench.read.ingest.ping.lines import HEADER
from wanbench.read.ingest.readers import loose_readers, reader_in_run

SAMPLES = Path(__file__).parent / "samples"
LOOSE = list(loose_readers())
A, B, C = "aws:eu-west-1", "gcp:us-east1", "azure:westeurope"
AT = "2026-11-21T10:00:{:02d}.000000+00:00"
GOOD = {
    "ping": (SAMPLES / "ping" / "busybox-1.35_loss.txt").read_bytes(),
    "iperf3": (SAMPLES / "iperf3" / "v3.12_tcp_p3_omit1_cubic.json").read_bytes(),
    "host_metrics": (SAMPLES / "host_metrics" / "sysstat-12.6.1_b.sadf.json").read_bytes(),
}
REFUSED = SAMPLES / "iperf3" / "v3.12_refused.json"


def ping_log(*rtts, unanswered=0):
    """What iputils prints: a reply for each time, then echoes without one."""
    lines = ["PING 198.51.100.7 (198.51.100.7) 56(84) bytes of data."]
    for n, rtt in enumerate(rtts, 1):
        lines.append(f"[1795262057.{n:06d}] 64 bytes from 198.51.100.7: icmp_seq={n} ttl=57 time={rtt} ms")
    sent = len(rtts) + unanswered
    share = f"{100 * unanswered / sent:g}"
    lines += ["", "--- 198.51.100.7 ping statistics ---"]
    lines += [f"{sent} packets transmitted, {len(rtts)} received, {share}% packet loss, time 9ms", ""]
    return "\n".join(lines).encode()


def iperf3_json(bits_per_second, *, protocol="TCP", reverse=0, retransmits=0, error=None, received=True):
    """The minimum that iperf3 reports."""
    size = bits_per_second // 8
    summary = {"bytes": size, "seconds": 1.0, "bits_per_second": bits_per_second}
    document = {
        "start": {"version": "iperf 3.12", "test_start": {"protocol": protocol, "reverse": reverse}},
        "intervals": [{"streams": [{"socket": 5, "start": 0, "end": 1.0, **summary, "omitted": False}]}],
        "end": {"sum_sent": summary | {"retransmits": retransmits}},
    }
    if received:
        document["end"]["sum_received"] = summary
        document["end"]["cpu_utilization_percent"] = {"remote_total": 1.5}
    return json.dumps(document | ({"error": error} if error else {})).encode()


class RunFolder:
    """Writes a run folder line by line, as the journal's format says."""

    def __init__(self, folder, links=()):
        self.folder, self.lines, self.ordinal = folder, [], 0
        folder.mkdir(parents=True)
        lab = {"kind": "local", "links": list(links)}
        about = {"schema_version": 1, "campaign": "try", "run_id": folder.name, "plan": {}, "parameters": {}}
        self.event("run-started", **about, lab=lab)

    def event(self, event, **members):
        line = {"event": event, "at_utc": AT.format(len(self.lines)), **members}
        self.lines.append(json.dumps(line))
        (self.folder / "journal.jsonl").write_text("\n".join(self.lines) + "\n")

    def file(self, path, data):
        target = self.folder / path
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        return {"path": path, "experiment": path.split("/")[0], "sha256": sha256, "bytes": len(data)}

    def test(self, a, b, *, attempt=1, failed=None, ended=True, **files):
        """A test with its files, named by experiment and extension: ping_txt=..., iperf3_json=..."""
        self.ordinal += attempt == 1
        test_id = f"{self.ordinal:04d}-{a.replace(':', '.')}-{b.replace(':', '.')}"
        about = {"test_id": test_id, "attempt": attempt}
        self.event("test-started", **about, round=1, from_region=a, to_region=b)
        if not ended:
            return
        kept = []
        for name, data in files.items():
            experiment, _, extension = name.partition("_")
            kept.append(self.file(f"{experiment}/{test_id}.{attempt}.{extension.replace('_', '.')}", data))
        if failed:
            self.event("test-failed", **about, experiment=failed, reason="it broke", files=kept)
        else:
            self.event("test-finished", **about, files=kept)


@pytest.fixture
def run(tmp_path):
    link = {"delay_ms": 20.0, "jitter_ms": 0.0, "loss": 0.01, "rate_bps": None, "queue_bytes": None}
    links = [{"from_region": A, "to_region": B, **link, "jitter_correlation_s": 0.05}]
    run = RunFolder(tmp_path / "20261121T100000Z-try", links)
    run.event("round-started", round=1)
    run.test(A, B, ping_txt=ping_log(40.5, 40.1, unanswered=1), iperf3_json=iperf3_json(80_000, retransmits=3))
    run.test(A, B, ping_txt=ping_log(44.0, 46.0), ping_stderr_txt=b"words", iperf3_json=iperf3_json(160_000))
    run.test(B, A, ping_txt=ping_log(50.0), iperf3_json=iperf3_json(90_000, reverse=1))
    run.test(A, C, failed="iperf3", ping_txt=ping_log(18.0), iperf3_json=REFUSED.read_bytes())
    run.test(A, C, attempt=2, failed="ping", ping_txt=b"rubbish\n")
    run.test(C, A, ended=False)
    run.event("interrupted", reason="SIGINT")
    return run


def test_all_tables_of_a_run(run):
    out = ingest.read_run(run.folder)
    assert list(out) == [
        "tests", "links", "echoes", "transfers", "intervals", "cuts", "link_counters", "unread",
    ]  # fmt: skip
    for name, frame in out.items():
        pd.testing.assert_frame_equal(tables.validate(name, frame), frame)
    assert out["tests"].outcome.tolist() == ["done", "done", "done", "failed", "failed", "interrupted"]
    echoes = out["echoes"]
    assert echoes.rtt_ms.dropna().tolist() == [40.5, 40.1, 44.0, 46.0, 50.0, 18.0]
    assert echoes.lost.sum() == 1 and echoes.sequence.tolist() == [1, 2, 3, 1, 2, 1, 1]
    assert echoes.from_region.tolist() == [A] * 5 + [B, A] and echoes.to_region.tolist() == [B] * 5 + [A, C]
    assert echoes.run_id.unique().tolist() == [run.folder.name] and echoes.attempt.tolist() == [1] * 7
    assert echoes.source_file[0] == "ping/0001-aws.eu-west-1-gcp.us-east1.1.txt"
    transfers = out["transfers"]
    assert transfers.throughput_bps.tolist()[:3] == [80_000, 160_000, 90_000]
    assert np.isnan(transfers.throughput_bps[3]) and "refused" in transfers.error[3]
    assert transfers.test_id.tolist() == out["tests"].test_id.tolist()[:4]
    assert len(out["intervals"]) == 3 and out["intervals"].direction.tolist() == ["forward"] * 2 + ["reverse"]
    assert out["links"].to_dict("records")[0]["loss"] == 0.01 and np.isnan(out["links"].rate_bps[0])
    [unread] = out["unread"].to_dict("records")
    assert unread == {
        "run_id": run.folder.name,
        "path": "ping/0004-aws.eu-west-1-azure.westeurope.2.txt",
        "line_number": 1,
        "found": "rubbish",
        "expected": HEADER,
    }


def test_tables_of_a_run_survive_parquet(run, tmp_path):
    for name, frame in ingest.read_run(run.folder).items():
        tables.write(name, frame, tmp_path / "tables")
        pd.testing.assert_frame_equal(tables.read(name, tmp_path / "tables"), frame)


def test_a_damaged_or_missing_file_is_unread_and_the_others_are_read(run):
    paths = sorted(run.folder.glob("ping/*.1.txt"))
    paths[0].write_bytes(paths[0].read_bytes().replace(b"40.5", b"10.5"))
    paths[1].unlink()
    out = ingest.read_run(run.folder)
    assert len(out["echoes"]) == 7 - 3 - 2 and len(out["transfers"]) == 4
    found = dict(zip(out["unread"].path, out["unread"].expected + " | " + out["unread"].found, strict=True))
    name = "ping/0001-aws.eu-west-1-gcp.us-east1.1.txt"
    digest = hashlib.sha256(ping_log(40.5, 40.1, unanswered=1)).hexdigest()
    assert found[name].startswith(f"SHA-256 {digest}, as the journal says | SHA-256 ")
    assert "a file that can be read | No such file" in found["ping/0002-aws.eu-west-1-gcp.us-east1.1.txt"]


def test_a_run_without_a_test_gives_empty_tables(tmp_path):
    out = ingest.read_run(RunFolder(tmp_path / "empty").folder)
    assert all(len(frame) == 0 for frame in out.values())
    assert len(ingest.summarise_pairs(out)) == 0


def test_no_run_folder_and_a_broken_one(tmp_path):
    with pytest.raises(ParameterError, match="not a run folder"):
        ingest.read_run(tmp_path)
    run = RunFolder(tmp_path / "broken", [{"from_region": A, "to_region": B, "delay_ms": "slow"}])
    with pytest.raises(RawDataError, match=r"journal.jsonl: expected tests and links of a run, found .table links"):
        ingest.read_run(run.folder)
    run = RunFolder(tmp_path / "odd", [5])
    with pytest.raises(RawDataError, match=r"tests and links of a run"):
        ingest.read_run(run.folder)


def test_pairs(run):
    pairs = ingest.summarise_pairs(ingest.read_run(run.folder)).set_index(["from_region", "to_region"])
    assert list(pairs.index) == sorted([(A, B), (A, C), (B, A), (C, A)])
    forward = pairs.loc[(A, B)]
    # Two tests with minimum RTTs 40.1 and 44; a reverse transfer that B started carried data from A to B.
    assert forward.rtt_ms == pytest.approx(42.05)
    assert (forward.n_tests, forward.n_echoes, forward.n_lost) == (2, 5, 1)
    assert (forward.throughput_bps, forward.n_transfers, forward.retransmits) == (90_000, 3, 3)
    assert forward.distance_km == regions.distance_km(A, B)
    assert forward.light_rtt_ms == regions.light_rtt_ms(forward.distance_km)
    assert (forward.from_cloud, forward.to_cloud) == ("aws", "gcp")
    backward = pairs.loc[(B, A)]
    assert backward.rtt_ms == 50 and np.isnan(backward.throughput_bps) and pd.isna(backward.retransmits)
    assert (backward.n_tests, backward.n_transfers) == (1, 0)
    failed = pairs.loc[(A, C)]
    assert (failed.n_tests, failed.n_echoes, failed.rtt_ms, failed.n_transfers) == (0, 1, 18, 0)
    interrupted = pairs.loc[(C, A)]
    assert (interrupted.n_tests, interrupted.n_echoes) == (0, 0) and np.isnan(interrupted.rtt_ms)


@pytest.mark.parametrize(("rtt", "value"), [("min", 42.05), ("mean", 42.65), ("median", 42.65)])
def test_what_stands_for_a_test(run, rtt, value):
    pairs = ingest.summarise_pairs(ingest.read_run(run.folder), rtt=rtt).set_index(["from_region", "to_region"])
    assert pairs.rtt_ms[(A, B)] == pytest.approx(value)


def windows(*times):
    lines = ["Pinging 198.51.100.7 with 32 bytes of data:"]
    return "\n".join(lines + [f"Reply from 198.51.100.7: bytes=32 time{t}ms TTL=57" for t in times] + [""]).encode()


@pytest.mark.parametrize(
    ("logs", "minimum", "median"),
    [
        ([("=5", "=6", "=7")], 5, 6),
        ([("<1", "=6", "=7")], np.nan, 6),
        ([("<1", "<1", "=7")], np.nan, np.nan),
        ([("<1", "=6", "=7"), ("=5", "=6", "=9"), ("=3", "=4", "=9")], 3, 6),
        ([("<1", "=6"), ("<1", "=6"), ("=3", "=4")], np.nan, np.nan),
    ],
)
def test_times_below_a_bound_never_raise_a_result(tmp_path, logs, minimum, median):
    run = RunFolder(tmp_path / "run")
    for log in logs:
        run.test(A, B, ping_txt=windows(*log))
    out = ingest.read_run(run.folder)
    for rtt, value in (("min", minimum), ("median", median)):
        [found] = ingest.summarise_pairs(out, rtt=rtt).rtt_ms
        assert found == value or (np.isnan(found) and np.isnan(value))


def test_only_first_replies_and_tcp_without_errors_count(tmp_path):
    run = RunFolder(tmp_path / "run")
    doubled = ping_log(40.0, 41.0).replace(b"2 received", b"2 received, +1 duplicates")
    reply = b"64 bytes from 198.51.100.7: icmp_seq=1 ttl=57 time=1.0 ms (DUP!)\n"
    doubled = doubled.replace(b"\n\n---", b"\n" + reply + b"\n---")
    run.test(A, B, ping_txt=doubled, iperf3_json=iperf3_json(80_000, protocol="UDP"))
    run.test(A, B, ping_txt=ping_log(40.0), iperf3_json=iperf3_json(160_000, error="interrupted"))
    run.test(A, B, cut_txt=ping_log(1.0, unanswered=50), iperf3_json=iperf3_json(99, received=False))
    out = ingest.read_run(run.folder)
    assert len(out["echoes"]) == 3 + 1 + 51 and out["echoes"].duplicate.sum() == 1 and not len(out["unread"])
    [pair] = ingest.summarise_pairs(out).to_dict("records")
    assert (pair["rtt_ms"], pair["n_echoes"], pair["n_lost"], pair["n_tests"]) == (40, 3, 0, 3)
    assert np.isnan(pair["throughput_bps"]) and pair["n_transfers"] == 0 and pd.isna(pair["retransmits"])


def test_regions_outside_the_catalogue_have_no_distance(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.test("lab:a", "lab:b", ping_txt=ping_log(40.0))
    [pair] = ingest.summarise_pairs(ingest.read_run(run.folder)).to_dict("records")
    assert np.isnan(pair["distance_km"]) and np.isnan(pair["light_rtt_ms"]) and pair["from_cloud"] == "lab"


def test_summaries_of_several_runs(tmp_path):
    outs = []
    for n, rtt in enumerate((40.0, 42.0, 50.0)):
        run = RunFolder(tmp_path / f"run{n}")
        run.test(A, B, ping_txt=ping_log(rtt, rtt + 1))
        outs.append(ingest.read_run(run.folder))
    joined = {name: pd.concat([out[name] for out in outs], ignore_index=True) for name in outs[0]}
    [pair] = ingest.summarise_pairs(joined).to_dict("records")
    assert (pair["rtt_ms"], pair["n_tests"], pair["n_echoes"]) == (42, 3, 6)


def test_counters_of_a_resumed_run_are_summed(tmp_path):
    run = RunFolder(tmp_path / "run")
    names = [column.name for column in tables.table("link_counters").columns]
    row = dict.fromkeys(names[3:], 5) | {"from_region": A, "to_region": B, "extra": 1}
    other = row | {"from_region": B, "to_region": A}
    unknown = row | {"bytes_sent": None}
    for session, content in (("counters", [row, other]), ("counters.2", [unknown])):
        file = run.file(f"links/{session}.json", json.dumps(content).encode())
        run.event("lab-closed", files=[file])
    run.event("lab-closed", files=[run.file("links/counters.3.json", b'[{"from_region": 5}]')])
    out = ingest.read_run(run.folder)
    counters = out["link_counters"].set_index("from_region")
    assert counters.packets_sent.to_dict() == {A: 10, B: 5} and counters.worst_late_ms.to_dict() == {A: 5, B: 5}
    assert np.isnan(counters.mean_late_ms[A]) and counters.mean_late_ms[B] == 5
    assert pd.isna(counters.bytes_sent[A]) and counters.bytes_sent[B] == 5, "a part is not the whole"
    assert out["unread"].path.tolist() == ["links/counters.3.json"]


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'[{"from_region": 5}]', b"[" * 100_000])
def test_counters_of_links_that_are_none_are_named(tmp_path, content):
    run = RunFolder(tmp_path / "run")
    run.event("lab-closed", files=[run.file("links/counters.json", content)])
    out = ingest.read_run(run.folder)
    assert out["link_counters"].empty and out["unread"].path.tolist() == ["links/counters.json"]


def test_cuts(tmp_path):
    run = RunFolder(tmp_path / "run")
    times = {"cut_at_s": 1.0, "cut_answered_at_s": 1.1, "healed_at_s": 2.0, "healed_answered_at_s": 2.1}
    run.test(A, B, cut_txt=ping_log(40.0), cut_cut_json=json.dumps(times).encode())
    [cut] = ingest.read_run(run.folder)["cuts"].to_dict("records")
    assert cut["from_region"] == A and cut["healed_at_s"] == 2.0


def test_loose_files(tmp_path):
    good, bad = SAMPLES / "ping" / "busybox-1.35_loss.txt", tmp_path / "bad.txt"
    bad.write_bytes(b"\xff")
    out = ingest.read_files([good, bad, tmp_path / "none.txt"], "ping")
    assert set(out) == {"echoes", "unread"} and len(out["echoes"]) == 6
    assert out["echoes"].source_file.unique().tolist() == [str(good)]
    assert out["echoes"][["run_id", "from_region", "attempt"]].isna().all(axis=None)
    assert out["unread"].path.tolist() == [str(bad), str(tmp_path / "none.txt")]
    out = ingest.read_files(sorted((SAMPLES / "iperf3").glob("v3.12_tcp*.json")), "iperf3")
    assert set(out) == {"transfers", "intervals", "unread"} and len(out["transfers"]) == 7
    with pytest.raises(ParameterError, match="experiment is 'iperf2'; allowed: 'ping', 'iperf3'"):
        ingest.read_files([good], "iperf2")
    with pytest.raises(ParameterError, match="allowed: a list of files"):
        ingest.read_files(str(good), "ping")


@pytest.mark.parametrize("experiment", LOOSE)
@pytest.mark.parametrize("name", [b"b\xff.txt", b"b\0.txt"])
def test_a_name_that_cannot_be_read_costs_no_other_file(tmp_path, experiment, name):
    path = os.fsdecode(bytes(tmp_path) + b"/" + name)
    if "\0" not in path:
        Path(path).write_bytes(ping_log(30.0))
    good = tmp_path / "a.txt"
    good.write_bytes(GOOD.get(experiment, b"nothing"))
    out = ingest.read_files([path, good, path], experiment)
    unread = out["unread"][out["unread"].path != str(good)]
    assert unread.expected.tolist() == ["a name in UTF-8 without NUL"] * 2
    assert set(unread.path) == {path.encode("utf-8", "backslashreplace").decode()}
    if experiment in GOOD:
        read = next(frame for name, frame in out.items() if name != "unread")
        assert set(read.source_file) == {str(good)}


def test_what_was_found_is_kept_short_whatever_was_found(tmp_path):
    for experiment in LOOSE:
        path = tmp_path / "long.txt"
        path.write_bytes(b"x" * 300_000)
        [row] = ingest.read_files([path], experiment)["unread"].to_dict("records")
        assert len(row["found"]) <= 120 and len(row["expected"]) <= 1000


def test_summaries_say_what_they_need(run):
    out = ingest.read_run(run.folder)
    with pytest.raises(ParameterError, match="rtt is 'p99'; allowed: 'min', 'mean', 'median'"):
        ingest.summarise_pairs(out, rtt="p99")
    with pytest.raises(ParameterError, match="summarise_pairs needs table transfers; given: tests, echoes"):
        ingest.summarise_pairs({name: out[name] for name in ("tests", "echoes")})
    loose = ingest.read_files([SAMPLES / "ping" / "busybox-1.35_loss.txt"], "ping")
    with pytest.raises(ParameterError, match="table echoes, row 0 has no from_region or to_region"):
        ingest.summarise_pairs(out | {"echoes": loose["echoes"]})


def test_files_of_a_run_find_their_reader_by_name():
    def read_by(experiment, name):
        reader = reader_in_run(experiment, name)
        return reader and (reader.read.__module__.removeprefix("wanbench.read.ingest."), reader.read.__name__)

    assert read_by("cut", "0001.1.txt") == ("ping", "read") and read_by("cut", "0001.1.json") == ("lab", "read_cut")
    assert read_by("kafka_load", "s.producer-0.txt") == ("kafka_load", "read")
    assert read_by("kafka_load", "s.times.json") == ("kafka_load.files", "read_times")
    assert read_by("links", "s.samples.jsonl") == ("lab", "read_samples")
    assert read_by("links", "s.samples.jsonl.gz") == ("lab", "read_samples")
    assert read_by("kafka_load", "s.producer-0.stderr.txt") is None and read_by("iperf3", "1.server.txt") is None
    assert read_by("netperf", "1.txt") is None, "no experiment of a run leaves it"


def test_a_reader_of_another_package_is_found_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "strange_reader.py").write_text(
        "from wanbench.read.ingest import ping\n"
        "from wanbench.read.ingest.readers import Reader\n"
        "reader = Reader(ping.read, '*.log', loose=True, tables=('echoes',))\n"
    )
    metadata = tmp_path / "strange_reader-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: strange_reader\nVersion: 1\n")
    points = "[wanbench.readers]\npinger = strange_reader:reader\nping = strange_reader:absent\n"
    (metadata / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(readers, "READERS", extensions("wanbench.readers", dict(readers.READERS)))
    log = SAMPLES / "ping" / "busybox-1.35_loss.txt"
    assert reader_in_run("pinger", "1.log.gz").read is ping.read and reader_in_run("ping", "1.txt").read is ping.read
    ours, theirs = (ingest.read_files([log], tool)["echoes"] for tool in ("ping", "pinger"))
    pd.testing.assert_frame_equal(ours, theirs)
