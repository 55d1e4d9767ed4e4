"""Commands on hosts of the local lab: output, statuses, time-outs, background, files; and what a lab refuses."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from patience import comes_about

from wanbench.errors import CommandError, LabError, ParameterError
from wanbench.measure.experiments.base import ended_with
from wanbench.measure.labs import processes
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings

LINKS = {("a", "b"): LinkSettings(1), ("b", "a"): LinkSettings(1)}


@pytest.fixture(scope="module")
def host():
    with LocalLab(["a", "b"], LINKS) as lab:
        yield lab.host("a")


def is_gone(word):
    """Whether no process of this machine has this word in its command line any more."""
    return comes_about(lambda: not any(word.encode() in arguments for arguments in command_lines()))


def command_lines():
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            yield Path("/proc", process, "cmdline").read_bytes().split(b"\0")


@pytest.mark.lab
def test_output_is_kept_byte_for_byte(host):
    done = host.run(["printf", r"\000\377\n"], timeout_s=60)
    assert (done.stdout, done.stderr, done.returncode) == (b"\0\xff\n", b"", 0)
    assert done.command == ("printf", r"\000\377\n")
    assert done.started_at_utc < done.ended_at_utc
    assert done.started_at_utc.endswith("+00:00")


@pytest.mark.lab
def test_words_are_not_read_by_a_shell(host):
    arguments = ["$HOME", "a b", ";", "*", "--", "'"]
    assert host.run(["printf", "%s\n", *arguments], timeout_s=60).stdout.decode().splitlines() == arguments


@pytest.mark.lab
def test_commands_start_in_the_folder_of_the_lab(host):
    assert host.run(["pwd"], timeout_s=60).stdout.decode().strip() == os.getcwd()


@pytest.mark.lab
def test_temporary_files_of_commands_are_in_the_scratch_folder(host):
    made = host.run(["mktemp"], timeout_s=60).stdout.decode().strip()
    assert Path(made).parent == Path(host.scratch)


@pytest.mark.lab
def test_a_status_that_is_no_result_is_an_error_with_the_last_words(host):
    command = ["sh", "-c", "echo out; echo cause >&2; exit 3"]
    with pytest.raises(CommandError, match="ended with status 3; its last output: cause") as caught:
        host.run(command, timeout_s=60)
    assert caught.value.completed.stdout == b"out\n"
    assert host.run(command, timeout_s=60, ok=(0, 3)).returncode == 3
    assert host.run(command, timeout_s=60, ok=None).returncode == 3


@pytest.mark.lab
def test_a_program_that_does_not_exist_is_an_error_that_names_it(host):
    with pytest.raises(CommandError, match="no-such-program"):
        host.run(["no-such-program"], timeout_s=60)


@pytest.mark.lab
def test_a_command_out_of_time_is_killed_with_all_it_started(host):
    script = "echo begun; sleep 987.1 & sleep 987.1; echo never"
    with pytest.raises(CommandError, match=r"did not end within 3 s.*begun") as caught:
        host.run(["sh", "-c", script], timeout_s=3)
    assert caught.value.completed.stdout == b"begun\n"
    assert is_gone("987.1")


@pytest.mark.lab
def test_a_background_command_prints_is_waited_for_and_ends(host):
    process = host.start(["sh", "-c", "echo one; sleep 0.1; printf 'tw'; sleep 0.1; echo o; exit 4"])
    process.wait_for_output("two", 60)
    done = process.wait(60)
    assert (done.stdout, done.returncode) == (b"one\ntwo\n", 4)
    assert process.stop() == done
    process.wait_for_output("one", 1)


@pytest.mark.lab
def test_waiting_for_words_that_never_come_ends(host):
    process = host.start(["sh", "-c", "echo something else; exit 2"])
    with pytest.raises(CommandError, match=r"ended with status 2 before it printed 'ready'.*something else"):
        process.wait_for_output("ready", 5)
    process = host.start(["sleep", "60"])
    with pytest.raises(CommandError, match=r"did not print 'ready' within 0\.1 s"):
        process.wait_for_output("ready", 0.1)
    with pytest.raises(CommandError, match=r"did not end within 0\.1 s"):
        process.wait(0.1)
    assert process.is_running()
    assert process.stop().returncode == -15
    assert not process.is_running()


@pytest.mark.lab
def test_stopping_lets_a_command_say_goodbye(host):
    process = host.start(["sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done"])
    process.wait_for_output("up", 5)
    first = process.stop()
    assert (first.stdout, first.returncode) == (b"up\nbye\n", 5)
    assert process.stop() is first


@pytest.mark.lab
def test_a_command_that_will_not_end_is_made_to(host):
    process = host.start(["sh", "-c", "trap '' TERM; echo up; sleep 987.2; sleep 987.2"])
    process.wait_for_output("up", 5)
    assert process.stop().returncode == -9
    assert is_gone("987.2")


@pytest.mark.lab
def test_a_command_can_be_stopped_as_soon_as_it_is_started(host):
    for _ in range(20):
        assert host.start(["sleep", "987.3"]).stop().returncode == -15
    assert is_gone("987.3")


@pytest.mark.lab
def test_a_chatty_background_command_waits_for_no_reader(host):
    process = host.start(["sh", "-c", "head -c 3000000 /dev/zero; echo done >&2"])
    assert len(process.wait(20).stdout) == 3_000_000


def entered(script):
    """A shell command that runs outside any lab."""
    return processes.EnteredProcess(["sh", "-c", script], ["setsid", "--wait", "--"])


def test_a_command_that_prints_too_much_is_killed_and_what_it_printed_is_kept(monkeypatch):
    monkeypatch.setattr(processes, "OUTPUT_BYTES", 1000)
    started = entered("head -c 5000 /dev/zero; exec sleep 600")
    done = started.wait(60)
    assert done.returncode == -9 and done.stdout == b"\0" * 1000 and not started.is_running()
    assert ended_with("tool", done).startswith("tool ended with status -9: wanbench: killed because it printed")
    left_alone = entered("head -c 5000 /dev/zero; exec sleep 600")
    assert comes_about(lambda: not left_alone.is_running()), "also if nobody waits for its end"
    assert left_alone.stop().returncode == -9


@pytest.mark.parametrize("script", ["echo half", "exit 1"])
def test_a_command_whose_output_may_be_cut_by_a_full_disk_has_failed(monkeypatch, script):
    full = os.statvfs_result((4096, 4096, 100, 0, 0, 9, 9, 9, 0, 255))
    monkeypatch.setattr(os, "fstatvfs", lambda _: full)
    done = entered(script).wait(60)
    assert done.returncode == 74 and b"wanbench: No space left on device" in done.stderr
    monkeypatch.setattr(os, "fstatvfs", lambda _: os.statvfs_result((4096, 4096, *[0] * 8)))
    assert entered("echo whole").wait(60).returncode == 0, "such a file system counts no blocks"


@pytest.mark.lab
def test_files_are_copied_both_ways(host, tmp_path):
    (tmp_path / "source").write_bytes(b"\0\1")
    host.put(tmp_path / "source", str(tmp_path / "there"))
    host.get(str(tmp_path / "there"), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"\0\1"
    with pytest.raises(LabError, match="missing cannot be copied"):
        host.get(str(tmp_path / "missing"), tmp_path / "back")


@pytest.mark.parametrize("command", ["ping host", [], [1], None])
@pytest.mark.lab
def test_a_command_that_is_no_list_of_words_fails(host, command):
    with pytest.raises(ParameterError, match=r"command is .*allowed: a list of arguments"):
        host.run(command, timeout_s=60)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"regions": "ab"}, "a list of names"),
        ({"regions": []}, "allowed: 1 to 254"),
        ({"regions": ["a", "b", "a"]}, "each name once"),
        ({"regions": [f"r{k}" for k in range(255)], "links": {}}, "has 255 names"),
        ({"links": {("a", "z"): LinkSettings(1)}}, "is .'a', 'z'"),
        ({"links": {("a", "a"): LinkSettings(1)}}, "is .'a', 'a'"),
        ({"links": {("a", "b"): 20}}, "allowed: LinkSettings"),
        ({"hosts_per_region": 0}, "hosts_per_region is 0"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"sysctls": {"kernel.hostname": "x"}}, "kernel.hostname"),
        ({"sysctls": {"net.ipv4/../../kernel.hostname": "x"}}, "must look like"),
        ({"sysctls": {"net.ipv4.tcp_sack": "0\n1"}}, "one line"),
    ],
)
def test_a_lab_that_cannot_be_meant_fails(wrong, named):
    with pytest.raises(ParameterError, match=named):
        LocalLab(**{"regions": ["a", "b"], "links": LINKS, **wrong})


def test_a_closed_lab_says_so():
    lab = LocalLab(["a", "b"], LINKS)
    for use in (
        lambda: lab.host("a").run(["true"], timeout_s=1),
        lambda: lab.set_link("a", "b", delay_ms=2),
        lambda: lab.cut("a", "b"),
        lab.counters,
    ):
        with pytest.raises(LabError, match="the lab is not open"):
            use()
    assert lab.links == LINKS, "nothing changed"
    with pytest.raises(KeyError, match="no host 0 in 'z'"):
        lab.host("z")


@pytest.mark.lab
def test_a_lab_refuses_what_it_does_not_have(host):
    lab = host._lab
    with pytest.raises(ParameterError, match="no link from 'a' to 'z'"):
        lab.set_link("a", "z", delay_ms=1)
    with pytest.raises(ParameterError, match=r"no such setting.*delay_ms, jitter_ms"):
        lab.set_link("a", "b", speed=1)
    with pytest.raises(ParameterError, match="no link from 'a' to 'z'"):
        lab.cut("a", "z")
    with pytest.raises(ParameterError, match="no region 'z'"):
        lab.cut_region("z")
    with pytest.raises(LabError, match="open already"):
        lab.__enter__()


@pytest.mark.lab
def test_a_sysctl_that_was_asked_for_is_set_and_one_the_kernel_refuses_is_an_error(host):
    with LocalLab(["a"], {}, sysctls={"net.ipv4.tcp_sack": "0"}) as lab:
        assert lab.host("a").run(["cat", "/proc/sys/net/ipv4/tcp_sack"], timeout_s=60).stdout == b"0\n"
        assert lab.describe()["sysctls"]["net.ipv4.tcp_sack"] == "0"
    with (
        pytest.raises(LabError, match=r"refuses net\.ipv4\.no_such_thing = '1'"),
        LocalLab(["a"], {}, sysctls={"net.ipv4.no_such_thing": "1"}),
    ):
        pass


@pytest.mark.lab
def test_a_congestion_control_that_the_kernel_does_not_have_is_an_error(host):
    lab = LocalLab(["a"], {}, sysctls={"net.ipv4.tcp_congestion_control": "magic"})
    with pytest.raises(LabError, match="congctl magic"), lab:
        pass
    assert not lab.is_open


@pytest.mark.lab
def test_a_lab_can_be_opened_again(host):
    lab = LocalLab(["a", "b"], LINKS)
    for _ in range(2):
        with lab:
            assert lab.host("a").run(["ping", "-c", "1", lab.host("b").address], timeout_s=60).returncode == 0
    assert lab.describe()["lateness"] == {}


def test_a_command_whose_output_is_not_known_says_why_it_is_not():
    class Lost(processes.PolledProcess):
        def wait(self, timeout_s):
            raise CommandError("the connection is gone")

    with pytest.raises(CommandError, match="the connection is gone"):
        Lost(["true"]).so_far()
