"""
How a batch gains from a second worker: `python benchmarks/batch.py`.

The same analysing notebooks (00, one seed each) run on a Dask scheduler with one worker and with two, in the order
1 2 2 1, so that a drift of the machine is the same for both. A time is that of the whole command. Processor time is
given for the jobs, and for what runs them: the command, the scheduler and the workers. The bound is for two processors.
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

from dask_cluster import cluster
from measured import record

ROOT = Path(__file__).resolve().parents[1]
LEAST = 1.7  # of at most 2; the command and the scheduler need processors, too
TURNS = (1, 2, 2, 1)


def main() -> int:
    """Measure by turns, print, and say whether the second worker gains enough (exit status 1 if not)."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--jobs", type=int, default=25, help="notebooks of each command (default: %(default)s)")
    jobs = options.parse_args().jobs
    took = {1: 0.0, 2: 0.0}
    print("workers  notebooks        s  processors: jobs  workers  command  whole machine")
    with tempfile.TemporaryDirectory(prefix="wanbench-batch-") as folder:
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


def _process_s(number: int) -> tuple[float, float]:
    """Return the processor time of a process, and of all its children."""
    fields = Path("/proc", str(number), "stat").read_text().rsplit(")", 1)[1].split()
    user, system, of_users, of_systems = (int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:15])
    children = [
        int(one)
        for task in Path("/proc", str(number), "task").iterdir()
        for one in (task / "children").read_text().split()
    ]
    return user + system, of_users + of_systems + sum(sum(_process_s(child)) for child in children)


def _machine_s() -> float:
    """Return the processor time of all processes of this machine since it started."""
    user, nice, system = (int(field) for field in Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
