"""
Measure how much faster two Dask workers run a batch than one, or what faults do to it: `python benchmarks/batch.py`.

The batch runs notebook 00 with one seed after another. The numbers of workers are 1, 2, 2 and 1 in turn, so that a
steady drift of the machine affects both alike. Times are of the whole command. Processor time is given for the jobs,
and for what runs them: the command, the scheduler and the workers. The bound is for two processors.

With `--faults --jobs 100`, one of two workers is killed when a third of the pages exists, and the connection to the
scheduler is cut when two thirds exist. Then the same command continues on the other worker. Its pages are compared with
those of a batch on this machine; pages that existed before a fault must not be made again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lib" / "tests"))

from dask_cluster import Relay, cluster
from measured import record

ROOT = Path(__file__).resolve().parents[1]
LEAST = 1.7  # of at most 2; the command and the scheduler need processors, too
TURNS = (1, 2, 2, 1)


def main() -> int:
    """Run what the options say; return 1 if a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--jobs", type=int, default=25, help="notebooks of each command (default: %(default)s)")
    options.add_argument("--faults", action="store_true", help="kill a worker, and cut the connection to the scheduler")
    jobs, faults = vars(options.parse_args()).values()
    with tempfile.TemporaryDirectory(prefix="wanbench-batch-") as folder:
        return with_faults(jobs, Path(folder)) if faults else by_turns(jobs, folder)


def by_turns(jobs: int, folder: str) -> int:
    """Measure one and two workers in turn, and print a table; return 1 if the second worker gains too little."""
    took = {1: 0.0, 2: 0.0}
    print("workers  notebooks        s  processors: jobs  workers  command  whole machine")
    environment = {**os.environ, "WANBENCH_DATA": folder}
    for turn, workers in enumerate(TURNS):
        with cluster(Path(folder, f"cluster-{turn}"), workers, environment=environment) as (address, started):
            command = [str(Path(sys.executable).with_name("wanbench")), "batch", "00", "--sweep", f"seed=1..{jobs}"]
            command += ["--name", f"turn-{turn}", "--cluster", address]
            busy_s, start = _machine_s(), time.perf_counter()
            with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as driver:
                _, status, used = os.wait4(driver.pid, 0)
                driver.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.perf_counter() - start
            if driver.returncode:
                sys.exit(f"the batch ended with status {driver.returncode}")
            took[workers] += seconds
            own_s, jobs_s = map(sum, zip(*(_process_s(one.pid) for one in started), strict=True))
            spent_s = (jobs_s, own_s, used.ru_utime + used.ru_stime, _machine_s() - busy_s)
            shown = "".join(f"{part / seconds:9.3f}" for part in spent_s)
            print(f"{workers:7}{jobs:11}{seconds:9.1f}          {shown}", flush=True)
    ratio, n = took[1] / took[2], 2 * jobs
    print(f"two workers over one: {ratio:.2f}; goal {LEAST:g}")
    what = f"{n} analysing notebooks, two Dask workers over one"
    record(what, ratio, "times as fast", bound=f"at least {LEAST:g}")
    record(f"{n} analysing notebooks on two Dask workers", took[2], "s", peer="one worker", of_peer=took[1])
    return int(ratio < LEAST)


def with_faults(jobs: int, folder: Path) -> int:
    """
    Kill a worker, cut the connection, and resume; return 1 unless each page is made once, and equals the local one.
    """
    environment = {**os.environ, "WANBENCH_DATA": str(folder)}
    command = [str(Path(sys.executable).with_name("wanbench")), "batch", "00", "--sweep", f"seed=1..{jobs}", "--name"]
    far, here = (folder / "scratch" / "batches" / name for name in ("far", "here"))

    def run(*more):
        return subprocess.Popen([*command, *map(str, more)], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)

    with cluster(folder / "cluster", environment=environment) as (address, workers):
        relay, kept = Relay(address), {}
        with run("far", "--cluster", relay.address) as driver:
            for part, fault in ((1 / 3, workers[0].kill), (2 / 3, relay.cut)):
                while len(kept := _pages(far) | kept) < part * jobs:
                    if driver.poll() is not None:
                        sys.exit(f"the batch ended with status {driver.returncode} before the faults")
                    time.sleep(0.2)
                print(f"{len(kept)} of {jobs} pages are there: {fault.__qualname__}", flush=True)
                fault()
        if driver.returncode != 2:
            sys.exit(f"without its scheduler, the batch ended with status {driver.returncode}")
        kept = _pages(far) | kept
        with run("far", "--cluster", address) as driver:
            pass
    made = _pages(far)
    again = [name for name in kept if made.get(name) != kept[name]]
    with run("here") as local:
        pass
    one, other = _contents(far), _contents(here)
    differ = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
    print(
        f"{len(kept)} pages after the cut, {len(made)} in the end; {again} made again; {differ} differ of {len(other)}"
    )
    what = f"{jobs} analysing notebooks on two Dask workers, one of them killed and the connection cut"
    record(f"{what}: pages", len(made), "pages", bound=f"all {jobs}")
    record(f"{what}: pages made twice", len(again), "pages", bound="none")
    record(f"{what}: files that differ from a local batch's", len(differ), "files", bound=f"none of {len(other)}")
    return int(len(made) != jobs or bool(again or differ or driver.returncode or local.returncode))


def _pages(folder: Path) -> dict[str, tuple[int, int]]:
    """Return inode and time (ns) of each page by job; both differ for a page that is made again."""
    found = [(path, path.stat()) for path in folder.glob("*/page")]
    return {path.parent.name: (one.st_ino, one.st_mtime_ns) for path, one in found}


def _contents(folder: Path) -> dict[Path, bytes]:
    files = [one for one in folder.glob("*/page/**/*") if one.is_file()] + [folder / "results.csv"]
    return {one.relative_to(folder): one.read_bytes() for one in files}


def _process_s(number: int) -> tuple[float, float]:
    """Return the processor time (s) of a process, and that of all its children, ended or not."""
    fields = Path("/proc", str(number), "stat").read_text().rsplit(")", 1)[1].split()
    user, system, of_users, of_systems = (int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:15])
    children = [
        int(one)
        for task in Path("/proc", str(number), "task").iterdir()
        for one in (task / "children").read_text().split()
    ]
    return user + system, of_users + of_systems + sum(sum(_process_s(child)) for child in children)


def _machine_s() -> float:
    """Return the processor time (s) of all processes of this machine since it started."""
    user, nice, system = (int(field) for field in Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
