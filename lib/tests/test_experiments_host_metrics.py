"""sysstat on the hosts of a lab, and what is read of sadf -j."""

import gzip
import json
import lzma
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_lab import Reply, ScriptedLab, well

from wanbench import tables
from wanbench.errors import ParameterError, RawDataError
from wanbench.measure.experiments import ExperimentError, Iperf3
from wanbench.measure.experiments.host_metrics import HostMetrics
from wanbench.measure.experiments.sampling import Sampling, measured_hosts
from wanbench.measure.kafka.external import RemoteBrokerHost
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings
from wanbench.read.ingest import host_metrics

SAMPLES = Path(__file__).parent / "samples" / "host_metrics"
MACHINE, NETWORK = SAMPLES / "sysstat-12.6.1_a.sadf.json", SAMPLES / "sysstat-12.6.1_b.sadf.json"
RECEIVED_BYTES = 24_078_792
"""What iperf3's receiver counted while the samples were recorded."""


def read(path):
    frame = host_metrics.read(path)["metrics"]
    context = {column.name: None for column in tables.CONTEXT} | {"source_file": path.name}
    return tables.validate("metrics", frame.assign(**context))


def values(frame, subject, metric):
    return frame[(frame.subject == subject) & (frame.metric == metric)].value.tolist()


def test_a_recording_says_what_is_known_of_it():
    frame = read(MACHINE)
    assert set(frame[frame.subject == "cpu all"].host) == {"a/0, b/0"}
    assert set(frame[frame.subject == "net wan0"].host) == {"a/0"}
    assert {"cpu all", "cpu 0", "cpu 1", "net lo", "net wan0", "disk vda", "memory", "load", "tcp"} <= set(
        frame.subject
    )
    whole = frame[frame.subject == "cpu all"].groupby("at_utc").value.sum()
    assert len(whole) == 4 and whole.between(99.9, 100.1).all()
    sent_kib = sum(values(frame, "net wan0", "txkB"))
    # All that was sent within the four whole seconds, which are not quite the four of iperf3.
    assert 0.7 * RECEIVED_BYTES < sent_kib * 1024 < 1.1 * RECEIVED_BYTES
    assert set(frame.at_utc.diff().dropna().dt.total_seconds()) == {0.0, 1.0}


def test_a_namespace_that_shares_the_machine_has_its_network_only():
    frame = read(NETWORK)
    assert {subject.split()[0] for subject in frame.subject} == {"net", "tcp"} and set(frame.host) == {"b/0"}
    assert sum(values(frame, "net wan0", "rxkB")) > 100 * sum(values(frame, "net wan0", "txkB"))


@pytest.mark.parametrize(
    ("subject", "metric", "unit", "interval_s"),
    [
        ("cpu all", "usr", "%", 1),
        ("net wan0", "rxpck", "packets/s", 1),
        ("net wan0", "txkB", "KiB/s", 1),
        ("net wan0", "rxdrop", "packets/s", 1),
        ("net wan0", "ifutil-percent", "%", 1),
        ("disk vda", "await", "ms", 1),
        ("tcp", "retrans", "1/s", 1),
        ("memory", "memfree", "KiB", None),
        ("memory", "memused-percent", "%", None),
        ("load", "ldavg-1", "", None),
    ],
)
def test_units_and_what_is_a_mean(subject, metric, unit, interval_s):
    frame = read(MACHINE)
    rows = frame[(frame.subject == subject) & (frame.metric == metric)]
    assert len(rows) == 4 and set(rows.unit) == {unit}
    assert rows.interval_s.isna().all() if interval_s is None else set(rows.interval_s) == {interval_s}
    assert not rows.cumulative.any() and set(rows.source) == {"sysstat"}


def test_older_versions_are_read_in_their_own_words():
    old = read(SAMPLES / "handmade-10.1_first-sample.sadf.json")
    assert values(old, "cpu all", "usr") == [0.0, 12.5] and set(old.host) == {"old"}
    assert old.interval_s.dropna().unique().tolist() == [600.0], "the first sample's interval is nonsense"
    assert "interrupts" not in " ".join(old.subject)
    later = read(SAMPLES / "handmade-11.5_user-system.sadf.json")
    assert values(later, "cpu all", "system") == [50.0] and values(later, "disk sda", "svctm") == [0.25]


def test_newer_versions_name_the_time_zone():
    new = read(SAMPLES / "handmade-12.7.1_timezone.sadf.json")
    assert values(new, "net eth0", "rxpck") == [100.5] and values(new, "cpu all", "usr") == [12.5]
    assert set(new.at_utc.astype(str)) == {"2026-11-20 23:59:59+00:00"} and set(new.interval_s) == {31}


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_compressed_files_are_read_as_they_come(tmp_path, compress):
    path = tmp_path / "x.sadf.json"
    path.write_bytes(compress(NETWORK.read_bytes()))
    assert read(path).value.tolist() == read(NETWORK).value.tolist()


def test_the_data_file_of_sar_is_named(tmp_path):
    path = tmp_path / "sa21"
    path.write_bytes(b"\x96\xd5\x75\x21\x0c\x06\x01\x00" + bytes(100))
    with pytest.raises(RawDataError, match="found 'a data file of sysstat, which sadf -j prints as text'"):
        host_metrics.read(path)


def damaged(tmp_path, old, new, count=1):
    path = tmp_path / "x.sadf.json"
    text = MACHINE.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"usr": 0.00', '"usr": 0,51', "decimal points"),
        ('"usr": 0.00', '"usr": "much"', "a number from 0 to 101"),
        ('"usr": 0.00', '"usr": 250', "a number from 0 to 101"),
        ('"usr": 0.00', '"usr": NaN', "a number"),
        ('"rxpck": 0.00', '"rxpck": -3', "a number from 0"),
        ('"utc": 1', '"utc": 0', "a time in UTC"),
        ('"utc": 1', '"tz": "CET"', "a time in UTC"),
        ('"utc": 1', '"tz": "GMT"', "a time in UTC"),
        ('"utc": 1', '"tz": null', "a time in UTC"),
        ('"time": "17', '"time": "25', "hour"),
        ('"date": "2026-', '"date": "26-', "a date and a time"),
        ('{"cpu": "all"', '{"processor": "all"', "the member cpu, which names"),
        ('"iface": "lo"', '"iface": ["lo"]', "the member iface, which names"),
        ('"cpu-load": [', '"cpu-load": [7,', "a list of objects"),
        ('"hosts": [', '"guests": [', "one host"),
        ('{"sysstat"', '{"status"', '"sysstat"'),
    ],
)
def test_what_is_no_output_of_sadf_is_refused(tmp_path, old, new, message):
    with pytest.raises(RawDataError, match=message):
        host_metrics.read(damaged(tmp_path, old, new))


def test_a_file_that_is_cut_names_its_line(tmp_path):
    path = tmp_path / "x.sadf.json"
    path.write_text("\n".join(MACHINE.read_text().splitlines()[:20]))
    with pytest.raises(RawDataError) as error:
        host_metrics.read(path)
    assert error.value.line_number == 20


@pytest.mark.parametrize("content", ["[]", "{}", '{"machine_of": 3, "network_of": []}', "{", '{"machine_of": [1]}'])
def test_a_damaged_list_of_hosts_is_refused(tmp_path, content):
    (tmp_path / "x.sadf.json").write_bytes(MACHINE.read_bytes())
    (tmp_path / "x.hosts.json").write_text(content)
    with pytest.raises(RawDataError, match=r"x\.hosts\.json"):
        host_metrics.read(tmp_path / "x.sadf.json")


@pytest.mark.fuzz
@given(st.data())
def test_damaged_files_end_in_rows_or_in_an_error(tmp_path_factory, data):
    content = NETWORK.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    put = data.draw(st.sampled_from([b"", b"\x00", b"9" * 30, b"null", b'"', b"{", b"]", b"\xff", b"-1", b"1e999"]))
    path = tmp_path_factory.mktemp("damaged", numbered=True) / "x.sadf.json"
    path.write_bytes(content[:at] + put + content[at + data.draw(st.integers(0, 40)) :])
    with suppress(RawDataError):
        read(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HostMetrics(interval_s=0), "interval_s is 0"),
        (lambda: HostMetrics(interval_s=0.5), "a whole number"),
        (lambda: HostMetrics(interval_s=True), "interval_s is True"),
        (lambda: HostMetrics(duration_s=0), "duration_s is 0"),
        (lambda: HostMetrics(duration_s=float("nan")), "duration_s is nan"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def scripted(sar, monkeypatch):
    monkeypatch.setattr("scripted_lab.ScriptedHost.scratch", "/nowhere")

    def script(host, command):
        if command[0] == "cat":
            return Reply(b"one-machine\n")
        if command[0] == "readlink":
            return Reply(b"net:[1]\n" if host.region == "a" else b"net:[2]\n")
        return sar if "sar" in command else well(host, command)

    return ScriptedLab(["a", "b"], script)


def test_without_sysstat_it_says_what_is_missing(tmp_path, monkeypatch):
    missing = Reply(b"", b"env: 'sar': No such file or directory", 127)
    with (
        scripted(missing, monkeypatch) as lab,
        pytest.raises(ExperimentError, match=r"No such file.*come with sysstat"),
        HostMetrics().concurrently(lab.host("a"), lab.host("b"), tmp_path, "s"),
    ):
        pytest.fail("it started")
    assert all(process.stopped for process in lab.processes if "sar" in process.command)


def test_what_runs_in_it_fails_as_itself_and_sar_is_stopped(tmp_path, monkeypatch):
    with scripted(Reply(b"Linux 6.1\n", lasts_s=None), monkeypatch) as lab:
        with (
            pytest.raises(ZeroDivisionError),
            HostMetrics().concurrently(lab.host("a"), lab.host("b"), tmp_path, "s") as files,
        ):
            raise ZeroDivisionError
        sars = [process for process in lab.processes if "sar" in process.command]
        assert len(sars) == 2 and all(process.stopped for process in sars)
    assert [file.path for file in files] == [
        f"host_metrics/s.{name}.{what}" for name in "ab" for what in ("sadf.json.gz", "hosts.json")
    ]
    sadfs = [process.command for process in lab.processes if "sadf" in process.command]
    assert "-P" in sadfs[0] and "-P" not in sadfs[1], "the machine that both share is read once"


def test_two_hosts_of_one_namespace_are_measured_once(tmp_path, monkeypatch):
    with scripted(Reply(b"Linux 6.1\n", lasts_s=None), monkeypatch) as lab:
        lab.host("b").region = "a"
        with HostMetrics().concurrently(lab.host("a"), lab.host("b"), tmp_path, "s") as files:
            pass
    assert len([process for process in lab.processes if "sar" in process.command]) == 1
    about = json.loads((tmp_path / files[1].path).read_text())
    assert about["machine_of"] == about["network_of"] == ["a", "b"]


def test_the_brokers_of_a_cluster_elsewhere_are_left_out():
    with ScriptedLab(["a", "b", "c"]) as lab:
        a, b, c = (lab.host(name) for name in "abc")
        hosts = [b, c, RemoteBrokerHost(3, "rack", "203.0.113.1")]
        a.cluster = SimpleNamespace(brokers=[SimpleNamespace(host=host) for host in hosts])
        assert measured_hosts(a, b) == [a, b, c]


def test_beside_can_be_asked_of_all_that_sample():
    assert issubclass(HostMetrics, Sampling) and HostMetrics(duration_s=3).expected_s(100.0) == 3


@pytest.mark.lab
def test_a_loaded_link_shows_in_the_namespace_of_its_host(tmp_path):
    links = {pair: LinkSettings(2, rate_bps=20e6) for pair in (("a", "b"), ("b", "a"))}
    with LocalLab(["a", "b"], links, hosts_per_region=2) as lab:
        source, target = lab.host("a", 1), lab.host("b")
        with HostMetrics().concurrently(source, target, tmp_path, "s") as files:
            Iperf3(duration_s=3).run(source, target, tmp_path, "s")
        left = source.run(["find", source.scratch, target.scratch, "-name", "*.sar"], timeout_s=5).stdout
    assert left == b""
    frames = {file.path: read(tmp_path / file.path) for file in files if file.path.endswith("sadf.json.gz")}
    frame = frames["host_metrics/s.a-1.sadf.json.gz"]
    assert set(frame[frame.subject == "cpu all"].host) == {"a/1, b/0"}
    assert set(frame[frame.subject.str.startswith("net ")].subject) == {"net lo", "net wan0"}
    sent_kib = values(frame, "net wan0", "txkB")
    assert len(sent_kib) >= 2 and 0.5 * 20e6 / 8 < 1024 * max(sent_kib) < 1.5 * 20e6 / 8
    received = values(frames["host_metrics/s.b-0.sadf.json.gz"], "net wan0", "rxkB")
    assert 0.5 * 20e6 / 8 < 1024 * max(received) < 1.5 * 20e6 / 8
