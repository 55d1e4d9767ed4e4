"""Ping and Iperf3: the arguments of their commands, what they keep, how they fail."""

import json

import pytest
from scripted_lab import PING_TEXT, Reply, ScriptedLab, well

from wanbench.errors import CommandError, LabError, ParameterError
from wanbench.measure.experiments import ExperimentError, Iperf3, Ping
from wanbench.measure.kafka.placement import CLIENT_PORT

A, B = "aws:eu-west-1", "gcp:us-east1"
STEM = "0007-aws.eu-west-1-gcp.us-east1.1"


def carry_out(experiment, folder, script=well):
    with ScriptedLab([A, B], script) as lab:
        try:
            return experiment.run(lab.host(A), lab.host(B), folder, STEM), lab
        finally:
            assert all(process.stopped for process in lab.processes if "-s" in process.command[:2])


def test_ping_keeps_what_was_printed(tmp_path):
    (file,), lab = carry_out(Ping(count=7, interval_s=0.25, payload_bytes=100), tmp_path)
    assert lab.processes[0].command == (
        *("ping", "-D", "-n", "-c", "7", "-i", "0.25", "-s", "100", "-W", "2"),
        "10.0.0.2",
    )
    text = PING_TEXT.replace(b"\n1 packets", b"\n7 packets")
    assert (tmp_path / f"ping/{STEM}.txt").read_bytes() == text
    assert (file.path, file.experiment, file.returncode) == (f"ping/{STEM}.txt", "ping", 0)
    assert file.command == lab.processes[0].command and file.bytes == len(text)
    assert file.started_at_utc <= file.ended_at_utc
    assert [p.name for p in (tmp_path / "ping").iterdir()] == [f"{STEM}.txt"]


@pytest.mark.parametrize(("interval_s", "preload"), [(0.1, None), (0.01, None), (0.005, 3), (0.002, 6), (0.001, 11)])
def test_echoes_that_are_close_together_do_not_wait_for_replies(interval_s, preload):
    arguments = Ping(interval_s=interval_s).command("10.0.0.2")
    assert preload is None or preload <= 3 or interval_s < 0.005, "ping refuses more to all but root"
    assert ("-l" in arguments) == (preload is not None)
    assert preload is None or arguments[arguments.index("-l") + 1] == str(preload)


def test_ping_without_any_reply_is_a_result(tmp_path):
    files, _ = carry_out(Ping(), tmp_path, lambda host, command: Reply(PING_TEXT, returncode=1))
    assert files[0].returncode == 1


def test_a_ping_that_was_killed_is_a_failure_even_if_its_status_is_1(tmp_path):
    killed = PING_TEXT[: PING_TEXT.index(b"packets transmitted")]
    with pytest.raises(ExperimentError, match=r"on aws.* ended before it had sent 20") as caught:
        carry_out(Ping(), tmp_path, lambda host, command: Reply(killed, returncode=1))
    assert [file.bytes for file in caught.value.files] == [len(killed)]


def test_a_ping_that_was_interrupted_is_a_failure_though_its_status_is_0(tmp_path):
    interrupted = PING_TEXT.replace(b"\n1 packets", b"\n15 packets")
    with pytest.raises(ExperimentError, match=r"on aws.* ended before it had sent 5 echoes") as caught:
        carry_out(Ping(count=5), tmp_path, lambda host, command: Reply(interrupted))
    assert [file.bytes for file in caught.value.files] == [len(interrupted)]


def test_ping_that_cannot_ping_fails_and_keeps_its_words(tmp_path):
    def script(host, command):
        return Reply(b"", b"ping: socktype: SOCK_RAW\nping: cannot flood, minimal interval is 2 ms\n", 2)

    with pytest.raises(ExperimentError, match="status 2: ping: cannot flood") as failure:
        carry_out(Ping(interval_s=0.001), tmp_path, script)
    assert [file.path for file in failure.value.files] == [f"ping/{STEM}.txt", f"ping/{STEM}.stderr.txt"]
    assert b"minimal interval" in (tmp_path / f"ping/{STEM}.stderr.txt").read_bytes()
    assert isinstance(failure.value, CommandError)


def test_a_ping_that_hangs_is_stopped_and_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("wanbench.measure.experiments.ping._MARGIN_S", 0.0)
    ping = Ping(count=1, interval_s=0.001, wait_s=0.1)
    with pytest.raises(ExperimentError, match="did not end within"):
        carry_out(ping, tmp_path, lambda host, command: Reply(PING_TEXT, lasts_s=None))
    assert (tmp_path / f"ping/{STEM}.txt").read_bytes() == PING_TEXT


def test_iperf3_starts_a_server_then_a_client(tmp_path):
    files, lab = carry_out(Iperf3(duration_s=3), tmp_path)
    server, client = (process.command for process in lab.processes)
    port = str(Iperf3().port(STEM))
    assert server == ("iperf3", "-s", "-1", "--forceflush", "-B", "10.0.0.2", "-p", port)
    arguments = f"iperf3 -J -c 10.0.0.2 -B 10.0.0.1 -p {port} --connect-timeout 5000 -i 0.5 -t 3"
    assert client == tuple(arguments.split())
    assert [file.path for file in files] == [f"iperf3/{STEM}.json", f"iperf3/{STEM}.server.txt"]
    assert {file.experiment for file in files} == {"iperf3"}


@pytest.mark.parametrize(
    "settings, arguments",
    [
        ({"streams": 4}, "-P 4"),
        ({"rate_bps": 2.5e6}, "-b 2500000"),
        ({"window_bytes": 65536}, "-w 65536"),
        ({"congestion_control": "cubic"}, "-C cubic"),
        ({"block_bytes": 1400}, "-l 1400"),
        ({"omit_s": 1}, "-O 1"),
        ({"reverse": True}, "-R"),
        ({"udp": True, "rate_bps": 1e6}, "-b 1000000 -u"),
        ({"interval_s": 0}, "-i 0"),
        ({"connect_timeout_s": 1.5}, "--connect-timeout 1500"),
    ],
)
def test_each_setting_reaches_the_command(settings, arguments):
    command = " ".join(Iperf3(**settings).client_command("10.0.0.2", "10.0.0.1", 5201))
    assert f" {arguments}" in command


def test_the_ip_version_chooses_the_addresses(tmp_path):
    with ScriptedLab([A, B], well) as lab:
        lab.host(A).address_ipv6, lab.host(B).address_ipv6 = "fd77::1", "fd77::2"
        files = [*Ping(ip_version=6).run(lab.host(A), lab.host(B), tmp_path, STEM)]
        files += Iperf3(ip_version=6).run(lab.host(A), lab.host(B), tmp_path, STEM)
        commands = [" ".join(file.command) for file in files]
        assert commands[0].endswith(" fd77::2")
        assert " -c fd77::2 -B fd77::1 " in commands[1] and " -B fd77::2 " in commands[2]
        lab.host(B).address_ipv6 = None
        for experiment in (Ping(ip_version=6), Iperf3(ip_version=6)):
            with pytest.raises(ExperimentError, match=r"gcp:us-east1 has no IPv6 address; its address is 10\.0\.0\.2"):
                experiment.run(lab.host(A), lab.host(B), tmp_path, STEM + "2")
    assert str(Ping(ip_version=6)).startswith("ping by IPv6:") and str(Iperf3(ip_version=6)).endswith("IPv6")
    assert Ping(count=10, ip_version=6).expected_bytes(1.0, None) == 2 * 10 * 104


def client_says(text, returncode, stderr=b""):
    def script(host, command):
        return well(host, command) if "-s" in command else Reply(text, stderr, returncode)

    return script


@pytest.mark.parametrize(
    "text, returncode, stderr, reason",
    [
        (json.dumps({"error": "unable to connect to server"}).encode(), 1, b"", "status 1: unable to connect"),
        (json.dumps({"error": "interrupt - stopped"}).encode(), 0, b"", "status 0: interrupt - stopped"),
        (b"iperf3: parameter error\n", 1, b"", "status 1: iperf3: parameter error"),
        (b'{"start": {', 0, b"", "status 0"),
        (b"", 1, b"iperf3: no route\n", "status 1: iperf3: no route"),
        (b"[" * 100_000, 1, b"", "status 1"),
        (b"", -9, b"", "status -9: it printed nothing"),
    ],
)
def test_iperf3_errors_are_reasons_and_the_files_are_kept(tmp_path, text, returncode, stderr, reason):
    with pytest.raises(ExperimentError, match=reason) as failure:
        carry_out(Iperf3(), tmp_path, client_says(text, returncode, stderr))
    paths = [file.path for file in failure.value.files]
    assert f"iperf3/{STEM}.json" in paths and f"iperf3/{STEM}.server.txt" in paths
    assert (tmp_path / f"iperf3/{STEM}.json").read_bytes() == text
    assert len(str(failure.value)) < 500


def test_a_server_that_does_not_listen_is_a_reason(tmp_path):
    def script(host, command):
        return Reply(b"", b"iperf3: error - unable to start listener: Address already in use\n", 1)

    with pytest.raises(ExperimentError, match="Address already in use") as failure:
        carry_out(Iperf3(), tmp_path, script)
    assert [f.path for f in failure.value.files] == [f"iperf3/{STEM}.server.txt", f"iperf3/{STEM}.server.stderr.txt"]


def test_a_client_that_hangs_is_stopped(tmp_path):
    def script(host, command):
        return Reply(b"Server listening", lasts_s=None if "-c" in command else 0)

    with pytest.raises(ExperimentError, match="did not end within"):
        carry_out(Iperf3(timeout_s=0.1), tmp_path, script)


def test_a_server_that_stays_does_not_fail_a_test_that_succeeded(tmp_path):
    def script(host, command):
        return Reply(b"Server listening", lasts_s=None) if "-s" in command else well(host, command)

    files, lab = carry_out(Iperf3(connect_timeout_s=0.1), tmp_path, script)
    assert len(files) == 2 and lab.processes[0].stopped


def test_the_server_is_stopped_when_the_client_cannot_be_started(tmp_path):
    def script(host, command):
        if "-c" in command:
            raise LabError("host is gone")
        return Reply(b"Server listening", lasts_s=None)

    with ScriptedLab([A, B], script) as lab:
        with pytest.raises(LabError, match="host is gone"):
            Iperf3().run(lab.host(A), lab.host(B), tmp_path, STEM)
        assert lab.processes[0].stopped


def test_another_attempt_has_another_port():
    iperf3 = Iperf3(first_port=20_000)
    ports = {iperf3.port(f"{n:04d}-a.x-b.y.{attempt}") for n in range(30) for attempt in (1, 2, 3)}
    assert len(ports) > 80 and all(20_000 <= port < 24_000 for port in ports)
    assert iperf3.port(STEM) == iperf3.port(STEM) != iperf3.port(STEM[:-1] + "2")


def test_no_test_has_a_port_of_the_brokers():
    ports = {Iperf3().port(f"{n:05d}-a.x-b.y.1") for n in range(20_000)}
    assert max(ports) < CLIENT_PORT and len(ports) > 3500


def test_raw_files_are_never_written_over(tmp_path):
    carry_out(Ping(), tmp_path)
    with pytest.raises(ParameterError, match="never overwritten"):
        carry_out(Ping(), tmp_path)


@pytest.mark.parametrize("stem", ["../x", "a/b", "", ".hidden", "a\nb"])
def test_a_stem_stays_in_its_folder(tmp_path, stem):
    with ScriptedLab([A, B]) as lab, pytest.raises(ParameterError, match="plain file name"):
        Ping().run(lab.host(A), lab.host(B), tmp_path, stem)
    assert not list(tmp_path.rglob("*.txt"))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Ping(count=0), "count is 0"),
        (lambda: Ping(count=2.5), "count is 2.5"),
        (lambda: Ping(interval_s=0), "interval_s is 0"),
        (lambda: Ping(payload_bytes=8), "payload_bytes is 8"),
        (lambda: Ping(wait_s=float("nan")), "wait_s is nan"),
        (lambda: Ping(ip_version=5), "ip_version is 5; allowed: 4, 6"),
        (lambda: Iperf3(ip_version="6"), "ip_version is '6'; allowed: 4, 6"),
        (lambda: Iperf3(duration_s=None), "allowed: a number from 1 to 86400"),
        (lambda: Iperf3(duration_s=0), "duration_s is 0"),
        (lambda: Iperf3(duration_s=0.5), "duration_s is 0.5"),
        (lambda: Iperf3(duration_s=1.5), "whole seconds, as iperf3"),
        (lambda: Iperf3(omit_s=0.5), "whole seconds, as iperf3"),
        (lambda: Iperf3(streams=0), "streams is 0"),
        (lambda: Iperf3(streams=None), "streams is None"),
        (lambda: Iperf3(streams=True), "streams is True"),
        (lambda: Iperf3(interval_s=0.05), "interval_s is 0.05"),
        (lambda: Iperf3(udp=True), "needs rate_bps"),
        (lambda: Iperf3(congestion_control="-P 99"), "congestion_control"),
        (lambda: Iperf3(udp=True, rate_bps=1e6, congestion_control="cubic"), "TCP only"),
        (lambda: Iperf3(first_port=80), "first_port is 80"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_expected_times():
    assert Ping(count=11, interval_s=0.1).expected_s(50.0) == pytest.approx(1.08, abs=0.06)
    assert Ping(count=101, interval_s=0.002).expected_s(5.0) == pytest.approx(0.25, abs=0.05)
    assert Ping(count=600, interval_s=0.005).expected_s(40.0) == pytest.approx(3.3, abs=0.3)
    timed = Iperf3(duration_s=2, omit_s=1)
    assert timed.expected_s(100) - timed.expected_s(0) == pytest.approx(0.75)
    assert timed.expected_s(0) > 3


def test_expected_bytes():
    assert Ping(count=10).expected_bytes(1.0, None) == 2 * 10 * 84
    assert Iperf3().expected_bytes(1.0) is None
    assert Iperf3(rate_bps=8e6, streams=2).expected_bytes(1.0) == 4e6
    assert Iperf3(rate_bps=8e6).expected_bytes(1.0, 4e6) == 1e6
