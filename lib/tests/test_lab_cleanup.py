"""
Nothing of a local lab is left behind, however it ends; and it opens without root's rights.

A lab is opened by another Python whose environment carries a mark. Everything it starts inherits the mark, so
its remains can be distinguished from all else on this machine.
"""

import os
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from itertools import permutations
from pathlib import Path

import pytest
from patience import comes_about

from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings
from wanbench.measure.links.launch import is_rootless

pytestmark = pytest.mark.lab

OPEN_AND = """
import os, signal, sys, threading, time
from wanbench.measure.labs.local import LocalLab
from wanbench.measure.links import LinkSettings

with LocalLab(["a", "b"], {{("a", "b"): LinkSettings(5), ("b", "a"): LinkSettings(5)}}) as lab:
    lab.host("b").start(["iperf3", "-s", "--forceflush"]).wait_for_output("listening", 60)
    lab.host("a").start(["sh", "-c", "trap '' TERM; echo up; sleep 600; sleep 600"]).wait_for_output("up", 60)
    lab.host("a").start(["sh", "-c", "while date > " + lab.host("a").scratch + "/date; do :; done"])
    lab.host("a").start(["ping", "-i", "0.1", lab.host("b").address])
    threading.Thread(target=lambda: lab.host("a").run(["sleep", "600"], timeout_s=600), daemon=True).start()
    time.sleep(0.2)
    print("open", flush=True)
    sys.stdin.readline()
    {then}
print("closed", flush=True)
"""


class Opened:
    """Another Python that has opened a lab and then does something."""

    def __init__(self, then, folder):
        self.mark = f"wanbench-test-{uuid.uuid4()}"
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", OPEN_AND.format(then=then)],
            env={**os.environ, "WANBENCH_TEST_MARK": self.mark, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout.readline() == b"open\n", self.process.stderr.read().decode()
        # Python, unshare, the supervisor; unshare and its command for the server and the shell. (ping, having rights
        # of its own, hides its environment from ordinary users.)
        assert len(self.left()) >= 1 + 2 + 3 * 2
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def left(self):
        """Processes that carry the mark."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if self.mark.encode() in (process / "environ").read_bytes():
                    found.append(process.name)
        return found

    def is_gone(self):
        return comes_about(lambda: not self.left() and not list(self.folder.iterdir()))


def names():
    """What a lab could leave in the namespace that everyone sees."""
    named = subprocess.run(["ip", "netns", "list"], capture_output=True, check=True).stdout
    return named, sorted(os.listdir("/sys/class/net"))


@pytest.fixture
def before():
    return names()


def test_nothing_is_left_after_success(before, tmp_path):
    opened = Opened("pass", tmp_path)
    assert opened.process.wait(60) == 0
    assert opened.is_gone()
    assert names() == before


def test_nothing_is_left_after_an_exception(before, tmp_path):
    opened = Opened("raise ZeroDivisionError", tmp_path)
    _, stderr = opened.process.communicate(timeout=60)
    assert b"ZeroDivisionError" in stderr
    assert opened.is_gone()
    assert names() == before


def test_nothing_is_left_after_ctrl_c(before, tmp_path):
    opened = Opened("lab.host('a').run(['sleep', '600'], timeout_s=600)", tmp_path)
    opened.process.send_signal(signal.SIGINT)
    _, stderr = opened.process.communicate(timeout=60)
    assert stderr.rstrip().endswith(b"KeyboardInterrupt")
    assert opened.is_gone()
    assert names() == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_after_the_parent_is_killed(before, tmp_path, number):
    opened = Opened("time.sleep(600)", tmp_path)
    opened.process.send_signal(number)
    assert opened.process.wait(60) == -number
    opened.process.communicate()
    assert opened.is_gone()
    assert names() == before


FREEZE_AND = """frozen = lab.host("a").start(["sh", "-c", "kill -STOP $$; sleep 600"])
    children = f"/proc/{frozen._front.pid}/task/{frozen._front.pid}/children"
    state = lambda: open(f"/proc/{open(children).read().strip()}/stat").read().rpartition(") ")[2][0]
    while not open(children).read() or state() != "T": time.sleep(0.05)
    time.sleep(0.5)  # for the program in front to stop too, if it does
    """


@pytest.mark.parametrize("then", ["os.kill(os.getpid(), signal.SIGKILL)", "raise KeyboardInterrupt", "pass"])
def test_nothing_is_left_when_a_command_is_frozen(before, tmp_path, then):
    opened = Opened(FREEZE_AND + then, tmp_path)
    opened.process.communicate(timeout=60)
    assert opened.is_gone()
    assert names() == before


def test_nothing_is_left_when_a_fork_of_the_parent_lives_on(before, tmp_path):
    # The fork keeps the socket to the supervisor open, so that alone would not tell the supervisor.
    then = "child = os.fork()\n    if not child: time.sleep(15); os._exit(0)\n    os.kill(os.getpid(), 9)"
    opened = Opened(then, tmp_path)
    assert opened.process.wait(60) == -signal.SIGKILL
    assert comes_about(lambda: len(opened.left()) == 1)
    [fork] = opened.left()
    os.kill(int(fork), signal.SIGKILL)
    opened.process.communicate()
    assert opened.is_gone()
    assert names() == before


def test_a_lab_whose_supervisor_is_killed_says_so_and_ends(before, tmp_path):
    then = "os.kill(lab._supervisor.pid, 9); time.sleep(0.2); lab.counters()"
    opened = Opened(then, tmp_path)
    _, stderr = opened.process.communicate(timeout=60)
    assert b"LabError: the lab's supervisor ended during the request 'counters'" in stderr
    assert opened.is_gone()
    assert names() == before


def test_the_next_lab_removes_the_folder_of_a_supervisor_killed_with_its_parent_and_no_other(before, tmp_path):
    killed = Opened("os.kill(lab._supervisor.pid, 9); os.kill(os.getpid(), 9)", tmp_path)
    killed.process.communicate(timeout=60)
    assert comes_about(lambda: not killed.left())
    [abandoned] = tmp_path.iterdir()
    running = Opened("sys.stdin.readline()", tmp_path)
    [folder] = tmp_path.iterdir()
    assert folder != abandoned
    ended = Opened("pass", tmp_path)
    ended.process.communicate(timeout=60)
    assert list(tmp_path.iterdir()) == [folder]
    running.process.communicate(timeout=60)
    assert running.is_gone()
    assert names() == before


def test_labs_side_by_side_do_not_meet(tmp_path):
    links = {pair: LinkSettings(1) for pair in permutations("ab", 2)}
    with LocalLab(["a", "b"], links) as first, LocalLab(["a", "b"], links) as second:
        first.cut("a", "b")
        ping = ["ping", "-n", "-c", "2", "-i", "0.02", "10.2.0.1"]
        assert first.host("a").run([*ping, "-W", "0.2"], timeout_s=60, ok=None).returncode == 1
        assert second.host("a").run(ping, timeout_s=60, ok=None).returncode == 0
        first.__exit__()
        assert second.host("a").run(ping, timeout_s=60, ok=None).returncode == 0


def test_all_pairs_of_46_regions(before):
    regions = [f"region{k}" for k in range(46)]
    links = {pair: LinkSettings(10 + k % 7) for k, pair in enumerate(permutations(regions, 2))}
    with LocalLab(regions, links) as lab:
        source, target = lab.host("region7"), lab.host("region45")
        done = source.run(["ping", "-n", "-c", "3", "-i", "0.02", target.address], timeout_s=10)
        carried = [row for row in lab.counters() if row["packets_sent"]]
    assert done.stdout.count(b"icmp_seq=") == 3
    assert sorted((row["from_region"], row["to_region"], row["packets_delivered"]) for row in carried) == [
        ("region45", "region7", 3),
        ("region7", "region45", 3),
    ]
    assert names() == before


def user_namespaces():
    """Whether somebody without rights may make a user namespace here; nobody may in a chroot."""
    arguments = ["setpriv", "--reuid=65534", "--clear-groups", "unshare", "--user", "true"]
    return subprocess.run(arguments, capture_output=True).returncode == 0


def test_no_lab_without_the_right_to_open_the_tun_device(tmp_path):
    if is_rootless():
        pytest.skip("needs root, to give its rights up")
    if not user_namespaces():
        pytest.skip("user namespaces cannot be made here")
    if os.stat("/dev/net/tun").st_mode & 0o006:
        pytest.skip("everyone may open a lab here")
    reason = as_nobody("print(LocalLab.unavailable())", tmp_path)
    mode = oct(os.stat("/dev/net/tun").st_mode & 0o777)[2:]
    assert reason.startswith("the relay needs /dev/net/tun, which cannot be opened: Permission denied")
    assert f"mode is {mode}" in reason


def test_a_lab_opens_without_root(tmp_path):
    if is_rootless():
        pytest.skip("all other tests show it")
    if not user_namespaces():
        pytest.skip("user namespaces cannot be made here")
    printed = as_nobody(
        "links = {('a', 'b'): LinkSettings(10), ('b', 'a'): LinkSettings(10)}\n"
        "with LocalLab(['a', 'b'], links) as lab:\n"
        "    ping = ['ping', '-n', '-c', '3', '-i', '0.2', lab.host('b').address]\n"
        "    done = lab.host('a').run(ping, timeout_s=10)\n"
        "    print(os.geteuid(), done.stdout.count(b'icmp_seq='), lab.describe()['machine']['rootless'])",
        tmp_path,
        device=True,
    )
    assert printed == "65534 3 True"


# In a separate mount namespace: folders that only root may enter become empty ones with just the ways to this
# Python and this repository; with "device", /dev/net/tun becomes one for everyone.
AS_NOBODY = """
import os, subprocess, sys
from pathlib import Path

def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)

held, wanted = Path(sys.argv[2]), [Path(word) for word in sys.argv[3:5]]
mount("-t", "tmpfs", "tmpfs", held)
if sys.argv[1] == "device":
    os.mknod(held / "tun", 0o020666, os.makedev(10, 200))
    os.chmod(held / "tun", 0o666)
    mount("--bind", held / "tun", "/dev/net/tun")
closed = {folder for path in wanted for folder in path.parents if not folder.stat().st_mode & 0o001}
for number, path in enumerate(wanted):
    (held / f"{number}").mkdir()
    mount("--bind", path, held / f"{number}")
for folder in closed:
    if not any(other in closed for other in folder.parents):
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
for number, path in enumerate(wanted):
    if closed & set(path.parents):
        path.mkdir(parents=True, exist_ok=True)
        mount("--bind", held / f"{number}", path)
os.chdir("/")
os.execvp("setpriv", ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *sys.argv[5:]])
"""


def as_nobody(code, folder, *, device=False):
    """What a piece of Python prints when run by a user without rights; skips where that cannot be arranged."""

    def run(code):
        repository = Path(__file__).parents[2]
        settings = ["device" if device else "no device", folder, sys.base_prefix, repository]
        arguments = ["unshare", "--mount", sys.executable, "-c", AS_NOBODY, *settings, sys.executable, "-c", code]
        return subprocess.run(arguments, capture_output=True, timeout=60, check=False)

    head = (
        "import os\nfrom wanbench.measure.labs.local import LocalLab\nfrom wanbench.measure.links import LinkSettings\n"
    )
    if (trial := run("import wanbench")).returncode:
        pytest.skip(f"no other user can run this Python here: {trial.stderr.decode()}")
    done = run(head + code)
    assert not done.returncode, done.stderr.decode()
    return done.stdout.decode().strip()


SLOW_AND_DIE = """from pathlib import Path
    from wanbench.measure.kafka.programs import process_limit
    from wanbench.measure.labs.programs import program_command
    host = lab.host("a")
    host.start(["sh", "-c", "echo $$ > $0; exec sleep 600", host.scratch + "/pid"])
    while not Path(host.scratch, "pid").exists() or not Path(host.scratch, "pid").read_text():
        time.sleep(0.05)
    words = program_command(host, Path(process_limit.__file__))
    slowing = host.start([*words, "--pid-file", host.scratch + "/pid", "--share", "0.1"])
    slowing.wait_for_output("share", 20)
    listed = Path(host.scratch, "control-groups")
    print(listed.read_text().strip() if listed.exists() else "none", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)"""


def test_no_control_group_is_left_when_everything_is_killed(before, tmp_path):
    opened = Opened(SLOW_AND_DIE, tmp_path)
    group = opened.process.stdout.readline().decode().strip()
    opened.process.wait(60)
    assert opened.is_gone()
    assert group == "none" or ("/wanbench-" in group and comes_about(lambda: not Path(group).exists(), 20))
    assert names() == before
