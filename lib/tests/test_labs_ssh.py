"""Hosts by SSH: real sshd's in the namespaces of a local lab, killed, cut off and rebooted."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace

import pytest
import ssh_driver
import sshd_in_namespaces
from patience import comes_about
from sshd_in_namespaces import OPERATOR, SECRET, SshdLab

from wanbench.cli import main
from wanbench.errors import CommandError, LabError
from wanbench.measure.campaign import measure
from wanbench.measure.kafka.lab import KafkaLab
from wanbench.measure.labs import LocalLab, geodesic_links
from wanbench.measure.labs.ssh import SshHost, SshLab, read_inventory
from wanbench.measure.labs.ssh.connection import Connection
from wanbench.read import ingest

pytestmark = pytest.mark.lab

FIRST = ssh_driver.REGIONS[0]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    if reason := sshd_in_namespaces.unavailable():
        pytest.skip(reason)
    links = geodesic_links(ssh_driver.REGIONS, rate_bps=20e6)
    with SshdLab(tmp_path_factory.mktemp("sshd"), links) as opened:
        yield opened


@pytest.fixture
def lab(sshd):
    with SshLab(ssh_driver.REGIONS, inventory=sshd.inventory) as opened:
        yield opened
    assert comes_about(lambda: not sshd.left())


def same(host, command, **options):
    done = host.run(command, timeout_s=30, **options)
    return done.returncode, done.stdout, done.stderr.replace(b"setsid: failed to execute ", b"")


def test_commands_do_the_same_as_on_a_local_host(sshd, lab, tmp_path):
    here, there = sshd.lab.host(FIRST), lab.host(FIRST)
    words = ["sh", "-c", 'printf "%s|" "$@"; echo "it\'s" >&2; exit 3', "-", "a b", "", "$x", "*", "ü\n"]
    assert same(here, words, ok=[3]) == same(there, words, ok=[3])
    assert same(here, ["no-such-program"], ok=None) == same(there, ["no-such-program"], ok=None)
    assert same(here, ["head", "-c", "3000000", "/dev/zero"]) == same(there, ["head", "-c", "3000000", "/dev/zero"])
    with pytest.raises(CommandError, match="ended with status 1"):
        there.run(["false"], timeout_s=30)
    with pytest.raises(CommandError, match=r"did not end within 3 s; its last output: begun"):
        there.run(["sh", "-c", "echo begun; sleep 600"], timeout_s=3)
    process = there.start(["sh", "-c", "trap '' TERM; echo up; sleep 600"])
    process.wait_for_output("up", 30)
    assert process.is_running() and process.printed() == b"up\n" and process.printed(1) == b"p\n"
    assert process.stop() is process.stop() and process.stop().returncode == -9
    content = os.urandom(2_500_000)
    (tmp_path / "sent").write_bytes(content)
    there.put(tmp_path / "sent", f"{there.scratch}/file")
    there.get(f"{there.scratch}/file", tmp_path / "came")
    assert (tmp_path / "came").read_bytes() == content
    assert there.run(["stat", "-c", "%a", there.scratch], timeout_s=30).stdout == b"700\n"
    assert there.run(["mktemp"], timeout_s=30).stdout.decode().startswith(f"{there.scratch}/")
    with pytest.raises(LabError, match="/none on host-0: No such file"):
        there.get("/none", tmp_path / "none")


def test_a_survey_is_that_of_the_local_lab_and_holds_no_secret(sshd, tmp_path):
    links = geodesic_links(ssh_driver.REGIONS, rate_bps=20e6)
    local = LocalLab(ssh_driver.REGIONS, links, seed=1)
    options = {"data_folder": tmp_path}
    runs = {
        "local": measure(ssh_driver.plan(1), local, campaign="local", **options),
        "ssh": ssh_driver.carry_out(tmp_path, sshd.inventory, 1),
    }
    tables = {kind: ingest.tabulate(run.folder) for kind, run in runs.items()}
    for name in ("tests", "echoes", "transfers", "intervals"):
        one, other = tables["local"][name], tables["ssh"][name]
        assert (list(one), list(one.dtypes)) == (list(other), list(other.dtypes)), name
        assert len(one) == len(other) or name == "intervals"  # iperf3 may add a short one at the end
    pairs = {kind: ingest.summarise_pairs(one).set_index(["from_region", "to_region"]) for kind, one in tables.items()}
    for one in pairs.values():  # never earlier, and never faster, than the links
        delays_ms = [links[pair].delay_ms + links[pair[::-1]].delay_ms for pair in one.index]
        assert len(one) and (one.rtt_ms > delays_ms).all() and one.throughput_bps.between(0, 20e6, "neither").all()

    described = runs["ssh"].lab
    assert [host["region"] for host in described["hosts"]] == list(ssh_driver.REGIONS)
    assert all(abs(host["clock"]["offset_ms"]) <= host["clock"]["error_ms"] for host in described["hosts"])
    assert described["congestion_control"] == "cubic" and described["tools"]["iperf3"].startswith("iperf")
    content = b"".join(path.read_bytes() for path in runs["ssh"].folder.rglob("*") if path.is_file())
    for planted in (SECRET, "user_key", "known_hosts", str(sshd.folder)):
        assert planted.encode() not in content


@pytest.mark.kafka
def test_a_cluster_is_started_by_ssh_and_serves_another_host(sshd):
    other = ssh_driver.REGIONS[1]
    lab = SshLab([FIRST, other], inventory=sshd.inventory)
    with KafkaLab(lab, [FIRST], profile="functional", heap_mb=256, start_timeout_s=300) as opened:
        cluster = opened.cluster
        assert cluster.bootstrap == f"{sshd.address(FIRST)}:9092"
        cluster.create_topic("by-ssh", partitions=2)
        [topic] = cluster.ask(opened.host(other), "topics", names=["by-ssh"])
        assert [partition["isr"] for partition in topic["partitions"]] == [[1], [1]]
        assert [node["host"] for node in opened.describe()["cluster"]["nodes"]] == ["host-0"]
    assert comes_about(lambda: not sshd.left())


def when_measuring(sshd, then):
    """Call `then` in a thread once a transfer from the first region has begun."""

    def wait():
        started = comes_about(
            lambda: sshd.lab.host(FIRST).run(["pgrep", "-f", "^iperf3 -J"], timeout_s=30, ok=None).stdout
        )
        if started:
            then()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def reboot(sshd):
    sshd.reboot(FIRST)


def cut_off(sshd):
    sshd.lab.cut(OPERATOR, FIRST)
    time.sleep(2 * sshd_in_namespaces.PATIENCE_S)
    sshd.lab.heal(OPERATOR, FIRST)


def resumed_until_finished(folder, inventory):
    """The run. A host that is not back when it is asked ends a call, and the next call goes on."""
    for _ in range(5):
        with suppress(LabError):
            return ssh_driver.carry_out(folder, inventory)
    return ssh_driver.carry_out(folder, inventory)


def test_a_host_that_is_cut_off_or_rebooted_costs_an_attempt_that_says_so(sshd, tmp_path):
    reasons = []
    for what in (cut_off, reboot):
        meddler = when_measuring(sshd, lambda what=what: what(sshd))
        try:
            run = resumed_until_finished(tmp_path / what.__name__, sshd.inventory)
        finally:
            meddler.join()
        assert {test.outcome for test in run.attempts()} >= {"done"}
        done = {one.test_id for one in run.attempts() if one.outcome == "done"}
        assert len(done) == len(ssh_driver.plan().tests)
        reasons.append(" ".join(one.reason for one in run.attempts() if one.outcome == "failed"))
    assert "the connection to host-0 was lost" in reasons[0]
    assert "the connection to host-0 was lost" in reasons[1]
    assert comes_about(lambda: not sshd.left())


def test_a_host_that_is_rebooted_between_commands_says_so_once(sshd, lab):
    host = lab.host(FIRST)
    before = host.scratch
    sshd.reboot(FIRST)
    assert comes_about(lambda: not host._kept.connection.is_open)
    with pytest.raises(LabError, match="host-0 was rebooted"):
        host.run(["true"], timeout_s=30)
    assert host.run(["true"], timeout_s=30).returncode == 0
    assert host.scratch != before


def test_a_killed_driver_leaves_nothing_and_the_next_goes_on(sshd, tmp_path):
    words = [sys.executable, ssh_driver.__file__, str(tmp_path), str(sshd.inventory)]
    driver = subprocess.Popen(words, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    journal = "*/*/*/journal.jsonl"
    assert comes_about(lambda: any(b"test-finished" in path.read_bytes() for path in tmp_path.glob(journal)))
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert comes_about(lambda: not sshd.left())
    run = ssh_driver.carry_out(tmp_path, sshd.inventory)
    assert any(event["event"] == "resumed" for event in run.events())
    outcomes = [one.test_id for one in run.attempts() if one.outcome == "done"]
    assert sorted(outcomes) == sorted(test.id for test in ssh_driver.plan().tests), "each once"


def test_a_host_behind_a_jump_host_is_reached_through_it(sshd):
    bottleneck, behind = (entry.host for entry in read_inventory(sshd.inventory).entries[:2])
    login = replace(behind.login, jump=bottleneck.login, proxy_command=())
    with SshHost("behind", behind.region, behind.address, login) as through:
        came_from = through.run(["sh", "-c", "echo $SSH_CONNECTION"], timeout_s=30).stdout.split()[0]
    assert came_from.decode() == bottleneck.address


def test_what_keeps_a_host_from_being_used_is_said(sshd, tmp_path, capsys, monkeypatch):
    def write_late(self, data):
        self._ssh.wait(60)
        write(self, data)

    known = sshd.folder / "known_hosts"
    lines, write = known.read_text(), Connection._write
    try:
        known.write_text(lines.replace("AAAA", "AAAB", 1).splitlines()[0] + "\n")
        for _ in ("at once", "after ssh has ended"):
            refused = "host-0 cannot be reached by SSH: Host key verification failed"
            with pytest.raises(LabError, match=refused):
                SshLab([FIRST], inventory=sshd.inventory).__enter__()
            monkeypatch.setattr(Connection, "_write", write_late)
        monkeypatch.undo()
    finally:
        known.write_text(lines)
    other = sshd.folder / "other.yml"
    other.write_text(sshd.inventory.read_text().replace("user: root", "user: planted"))
    with pytest.raises(LabError, match="host-0: Permission denied") as caught:
        SshLab([FIRST], inventory=other).__enter__()
    assert "planted" not in str(caught.value) and sshd.address(FIRST) not in str(caught.value)
    with pytest.raises(LabError, match=r"sudo sysctl -w net.core.rmem_max='7'"):
        SshLab([FIRST], inventory=sshd.inventory, sysctls={"net.core.rmem_max": "7"}).__enter__()
    assert len(read_inventory(sshd.inventory).entries) == len(ssh_driver.REGIONS)
    main(["doctor", "--inventory", str(sshd.inventory)])
    assert "ok       host-2: iperf3" in capsys.readouterr().out
