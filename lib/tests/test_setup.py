"""Make, .ci/run and the set-up scripts, without installing anything."""

import csv
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "lib/wanbench/programs.csv"
TOOLS = ["bash", "env", "dirname", "cut", "id", "tr", "sort", "cat", "awk", "head", "cksum"]
JAVA = """echo 'openjdk version "{}" 2025-04-15' >&2"""


@pytest.fixture
def bare(tmp_path):
    """A copy of the set-up scripts in a folder with a space, and a PATH on which almost nothing is."""
    (tmp_path / "a clone/lib/wanbench").mkdir(parents=True)
    shutil.copytree(ROOT / "scripts", tmp_path / "a clone/scripts")
    shutil.copy(PROGRAMS, tmp_path / "a clone/lib/wanbench")
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    script = tmp_path / "a clone/scripts/system-packages.sh"
    extra_folders = 'PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"\n'
    assert extra_folders in script.read_text()
    script.write_text(script.read_text().replace(extra_folders, ""))
    return tmp_path


def program(folder, name, text):
    path = folder / "bin" / name
    path.write_text(f"#!{shutil.which('bash')}\n{text}\n")
    path.chmod(0o755)


def system_packages(folder, *arguments):
    return subprocess.run(
        [folder / "a clone/scripts/system-packages.sh", *arguments],
        env={"PATH": str(folder / "bin"), "LOG": str(folder / "log")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def python_stub(folder, version="3, 12, 1"):
    program(folder, "python3", f'[ "({version})" \\< "(3, 11" ] && exit 1; echo /somewhere/python3')


def test_names_each_missing_program_and_how_to_get_it(bare):
    python_stub(bare)
    done = system_packages(bare, "tests")
    assert done.returncode == 0 and "mtr" not in done.stderr
    for row in csv.DictReader(PROGRAMS.open()):
        if row["needed_for"].endswith("(optional)"):
            continue
        assert f"  {row['program'].split()[0]}\n" in done.stderr
        assert f"apt-get install {row['debian']}\n" in done.stderr
        assert f"dnf install {row['fedora']}\n" in done.stderr
        assert f"macOS:           {row['macos']}\n" in done.stderr
    assert "replayed instead" in done.stderr


def test_says_nothing_when_nothing_is_missing(bare):
    python_stub(bare)
    for row in csv.DictReader(PROGRAMS.open()):
        program(bare, row["program"].split()[-1], "exit 0")
    program(bare, "java", JAVA.format("17.0.15"))
    done = system_packages(bare, "tests")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="installs as root; as another user it would need sudo")
@pytest.mark.parametrize("arguments", [(), ("tests",)], ids=["to measure", "to test"])
def test_installs_only_what_is_missing_and_asks_nothing(bare, arguments):
    python_stub(bare)
    program(bare, "ping", "exit 0")
    program(bare, "apt-get", 'echo "$DEBIAN_FRONTEND $*" >>"$LOG"; read -r && echo "stdin was open" >>"$LOG"; exit 0')
    system_packages(bare, *arguments)
    updated, measuring, ssh, kafka, figures, *tests = (bare / "log").read_text().splitlines()
    assert updated.startswith("noninteractive") and updated.endswith("update")
    assert measuring.startswith("noninteractive") and measuring.endswith("install iperf3 iproute2 sysstat util-linux")
    assert ssh.endswith("install openssh-client")
    assert [line.split(" install ")[1] for line in tests] == ["openssh-server"] * len(arguments)
    assert kafka.endswith("install maven openjdk-17-jre-headless")
    assert figures.endswith("install chromium fonts-dejavu-core libatomic1")


@pytest.mark.skipif(os.geteuid() != 0, reason="installs as root; as another user it would need sudo")
@pytest.mark.parametrize("was_there", [False, True], ids=["installed now", "there before"])
def test_services_are_switched_off_only_where_they_were_installed_now(bare, was_there):
    """dpkg knows packages as installed from the first install on, or before any."""
    python_stub(bare)
    program(bare, "apt-get", 'echo "$*" >>"$LOG"')
    program(bare, "systemctl", 'echo "systemctl $*" >>"$LOG"')
    known = "true" if was_there else '[ -e "$LOG" ]'
    program(bare, "dpkg-query", f"{known} && echo 'install ok installed'")
    done = system_packages(bare, "tests")
    off = "systemctl disable --now sysstat-collect.timer sysstat-summary.timer sysstat.service"
    assert ((bare / "log").read_text().splitlines().count(off) == 1) is not was_there
    assert ((bare / "log").read_text().count("disable --now ssh.socket ssh.service") == 1) is not was_there
    assert ("Switched off the system-wide sampling of sysstat" in done.stderr) is not was_there


@pytest.mark.skipif(os.geteuid() != 0, reason="installs as root; as another user it would need sudo")
def test_goes_on_when_apt_fails(bare):
    python_stub(bare)
    program(bare, "apt-get", "exit 100")
    done = system_packages(bare)
    assert done.returncode == 0
    assert "apt-get could not install: iperf3" in done.stderr
    assert "Missing for measuring" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="installs as root; as another user it would need sudo")
def test_a_package_that_this_system_has_not_keeps_no_other_away(bare):
    python_stub(bare)
    for name in ("iperf3", "ping", "ip", "sar", "sadf", "unshare", "nsenter", "ssh", "sshd", "chromium"):
        program(bare, name, "exit 0")
    program(bare, "apt-get", 'echo "$*" >>"$LOG"; [[ "$*" != *openjdk-17* ]]')
    done = system_packages(bare)
    ends = [line.split(" install ")[-1] for line in (bare / "log").read_text().splitlines()[1:]]
    assert ends == ["maven openjdk-17-jre-headless", "maven", "openjdk-17-jre-headless"]
    assert "apt-get could not install: maven openjdk-17-jre-headless" in done.stderr


@pytest.mark.parametrize(
    "version, is_missing", [("1.8.0_292", True), ("11.0.2", True), ("17", False), ("21.0.7", False), ("x", True)]
)
def test_java_counts_only_if_it_is_new_enough(bare, version, is_missing):
    python_stub(bare)
    program(bare, "java", JAVA.format(version))
    assert ("  java\n" in system_packages(bare).stderr) == is_missing


def test_without_maven_kafka_is_said_to_be_missing_and_set_up_goes_on(bare):
    shutil.copytree(ROOT / "lib/wanbench/measure/kafka", bare / "a clone/lib/wanbench/measure/kafka")
    done = subprocess.run(
        [bare / "a clone/scripts/kafka-jars.sh"],
        env={"PATH": str(bare / "bin")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert done.stderr.strip() == (
        "Maven is missing, so Kafka was not fetched: experiments with Kafka cannot run here."
    )


@pytest.mark.parametrize("with_python", [None, "3, 10, 12"])
def test_stops_without_a_python_that_is_new_enough(bare, with_python):
    if with_python:
        python_stub(bare, with_python)
    done = system_packages(bare)
    assert done.returncode == 1
    assert "No Python 3.11 or newer" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


def test_a_matching_stamp_makes_set_up_do_nothing(bare):
    clone = bare / "a clone"
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / "requirements.txt").write_text("")
    (clone / "lib/pyproject.toml").write_text("")
    python = clone / ".venv/bin/python"
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    script = [str(clone / "scripts/python-environment.sh")]
    environment = {"PATH": str(bare / "bin")}
    inputs = ["requirements.txt", "lib/pyproject.toml", "scripts/python-environment.sh"]
    sums = subprocess.run(["cksum", *inputs], cwd=clone, capture_output=True, text=True, check=True).stdout
    stamp = clone / ".venv/wanbench-environment"
    stamp.write_text(f"{os.path.realpath(clone)}\n{sums}")
    done = subprocess.run(script, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (clone / "requirements.txt").write_text("changed")
    done = subprocess.run(script, env=environment, capture_output=True, text=True)
    assert done.returncode != 0 and "No Python 3.11" in done.stderr


def test_an_environment_of_another_folder_is_left_alone(bare):
    python_stub(bare)
    (bare / "shared/bin").mkdir(parents=True)
    (bare / "a clone/.venv").symlink_to(bare / "shared")
    for name in ("requirements.txt", "lib/pyproject.toml"):
        (bare / "a clone" / name).write_text("")
    script = bare / "a clone/scripts/python-environment.sh"
    done = subprocess.run([script], env={"PATH": str(bare / "bin")}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "is a link" in done.stderr
    assert (bare / "shared/bin").is_dir()


def test_make_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE)
    done = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"^  make (\S+)", done.stdout, flags=re.MULTILINE) == targets
    assert {"report", "test", "lab", "setup", "lock", "check", "clean", "bench", "full"} <= set(targets)
    assert set(re.findall(r"^\.PHONY: (\S+)", makefile, flags=re.MULTILINE)) == set(targets)


def test_ci_runs_make_test():
    path = ROOT / ".ci/run"
    assert os.access(path, os.X_OK)
    assert path.read_text().splitlines()[0] == "#!/usr/bin/env bash"
    assert path.read_text().splitlines()[-1] == "exec make test"


@pytest.mark.parametrize("path", sorted((ROOT / "scripts").glob("*.sh")), ids=lambda path: path.name)
def test_scripts_parse_and_are_executable(path):
    assert os.access(path, os.X_OK)
    subprocess.run(["bash", "-n", str(path)], check=True)


def test_programs_table_is_complete():
    rows = list(csv.DictReader(PROGRAMS.open()))
    assert rows and all(all(row.values()) and None not in row for row in rows)
    assert {row["needed_for"] for row in rows} == {
        "measuring",
        "hosts by SSH",
        "tests of hosts by SSH",
        "Kafka",
        "static figures",
        "routes of campaigns (optional)",
    }


def test_uv_can_be_cut_out_of_the_lock():
    awk = re.search(r"awk '(.*)' requirements.txt", (ROOT / "scripts/python-environment.sh").read_text())[1]
    lines = subprocess.run(["awk", awk, str(ROOT / "requirements.txt")], capture_output=True, text=True).stdout
    assert re.fullmatch(
        r"uv==[0-9.]+ \\\n(    --hash=sha256:[0-9a-f]{64} \\\n)*    --hash=sha256:[0-9a-f]{64}\n", lines
    )
