"""
Changes of RTT that a campaign must find: `python benchmarks/campaign_changes.py [--minutes 18] [--seed 1]`.

Three regions are namespaces of one lab, with an sshd in each, as if they were hosts of one's own. `wanbench campaign`
repeats a small survey of them by SSH; it is not told that meanwhile the delays of links change, at moments and by
factors drawn from the seed. Then the method of page 14 reads the campaign, and what it finds is compared with what was
done. A change is found after as many repetitions as the campaign must go on for the method to find it. Needs root and
openssh-server.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib" / "tests"))

import nbformat
import pandas as pd
import yaml
from example_site import make_checkout
from measured import record
from sshd_in_namespaces import SshdLab, unavailable

from wanbench.measure.labs import matrix_links
from wanbench.pages import over_time
from wanbench.pages.over_time.levels import FEWEST, find_changes

ROOT = Path(__file__).resolve().parents[1]
RTT_MS = {
    ("aws:eu-west-1", "aws:us-east-1"): 40.0,
    ("aws:eu-west-1", "gcp:asia-southeast1"): 90.0,
    ("aws:us-east-1", "gcp:asia-southeast1"): 120.0,
}
MAIN = [sys.executable, "-c", "import sys; from wanbench.cli import main; sys.exit(main())"]
PARAMETERS = """\
lab = "ssh"  # where to measure
lab_options = {}  # of the lab
campaign = ""  # its name
regions = ["aws:eu-west-1"]  # to ping"""
MEASURE = """\
from wanbench.measure import campaign as campaigns
from wanbench.measure import experiments
from wanbench.measure.plan import make_plan

pings = [experiments.Ping(count=5, interval_s=0.05)]
plan = make_plan(regions=regions, experiments=pings, rate_bps=1e8)
run = campaigns.run(plan, {}, lab=lab, lab_options=lab_options, campaign=campaign)
run"""
AWAY = 20  # Fewest repetitions between changes of a pair, and to the ends: page 14 drops levels of 14 steps or less.
FACTORS = (0.8, 0.9, 0.95, 1.05, 1.1, 1.25)
NEAR = 2  # Repetitions between a change and the one that is found: the first one may have begun before the change.


@dataclass(frozen=True)
class Change:
    """A pair of regions whose RTT is multiplied by a factor, at a share of the campaign's duration."""

    pair: tuple[str, str]
    at: float
    factor: float


def drawn(seed: int, repetitions: int) -> list[Change]:
    """Draw no, one or two changes for each pair."""
    rng, changes, away = random.Random(seed), [], AWAY / repetitions
    for number, pair in zip(rng.sample(range(len(RTT_MS)), len(RTT_MS)), RTT_MS, strict=True):
        moments = sorted(rng.uniform(away, 1 - away) for _ in range(number))
        while any(later - earlier < away for earlier, later in pairwise(moments)):
            moments = sorted(rng.uniform(away, 1 - away) for _ in range(number))
        changes += [Change(pair, at, rng.choice(FACTORS)) for at in moments]
    return sorted(changes, key=lambda change: change.at)


def repeat(folder: Path, sshd: SshdLab, changes: list[Change], duration_s: float, every_s: float) -> list[float]:
    """Repeat the campaign and make the changes meanwhile; return the moment of each change."""
    top, moments = folder / "top", [0.0] * len(changes)
    about = [("text", "# RTT"), ("parameters", PARAMETERS), ("code", MEASURE)]
    make_checkout(top, {"00-pings": about})
    (top / "data").symlink_to(ROOT / "data")
    (path,) = (top / "notebooks").iterdir()
    notebook = nbformat.read(path, 4)
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(notebook, path)
    given = {"lab_options": {"inventory": str(sshd.inventory)}, "regions": sshd.regions}
    file = folder / "changing.yml"
    file.write_text(yaml.safe_dump({"campaign": "changing", "notebook": "00", "every": "5m", "parameters": given}))

    def change(number):
        one = changes[number]
        for pair in (one.pair, one.pair[::-1]):
            sshd.lab.set_link(*pair, delay_ms=sshd.lab.links[pair].delay_ms * one.factor)
        moments[number] = time.time()

    timers = [threading.Timer(one.at * duration_s, change, [number]) for number, one in enumerate(changes)]
    began = time.time()
    try:
        for timer in timers:
            timer.start()
        for number in range(ceil(duration_s / every_s)):
            time.sleep(max(0.0, began + number * every_s - time.time()))
            if time.time() > began + duration_s:
                break
            command = [*MAIN, "campaign", str(file), "--now"]
            done = subprocess.run(command, cwd=top, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"a repetition failed: {done.stderr}")
    finally:
        for timer in timers:
            timer.cancel()
    return moments


def found_in(series: pd.Series, step: str) -> list[float]:
    """Return when the levels of a series begin, in seconds, without the first."""
    since = find_changes(series, step=step).rows.since[1:]
    return [at.timestamp() for at in since]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    options.add_argument("--minutes", type=float, default=18, help="how long (default: %(default)s)")
    options.add_argument("--every", type=int, default=12, help="seconds from one repetition to the next (%(default)s)")
    options.add_argument("--seed", type=int, default=1, help="of the changes (default: %(default)s)")
    given = options.parse_args()
    if why := unavailable():
        sys.exit(why)
    duration_s, step = 60 * given.minutes, f"{given.every}s"
    if duration_s / given.every < FEWEST:
        options.error(f"{duration_s:g} s is too short: page 14 looks for changes from {FEWEST} repetitions on.")
    changes = drawn(given.seed, int(duration_s / given.every))
    with tempfile.TemporaryDirectory(prefix="wanbench-changes-") as name:
        folder = Path(name)
        os.environ |= {"WANBENCH_DATA": str(folder / "data"), "WANBENCH_SHARE_MACHINE": "1"}
        with SshdLab(folder, matrix_links(RTT_MS)) as sshd:
            moments = repeat(folder, sshd, changes, duration_s, given.every)
        values = over_time.open_campaign("changing", regions=[]).values
        every = over_time.changes_of_pairs(values, step=step).series
    delays, false = [], 0
    for pair, of in every.items():
        left = found_in(of.values, step)
        for one, at in zip(changes, moments, strict=True):
            if set(one.pair) != set(pair):
                continue

            def is_near(since, at=at):
                return abs(since - at) <= NEAR * given.every

            hits = [since for since in left if is_near(since)]
            left = [since for since in left if since not in hits]
            ends = [end for end, moment in enumerate(of.values.index, 1) if moment.timestamp() > at]
            needed = (n for n, end in enumerate(ends, 1) if any(map(is_near, found_in(of.values[:end], step))))
            delays.append(next(needed) if hits else None)
            told = f"found after {delays[-1]} repetitions" if hits else "MISSED"
            print(f"{' to '.join(pair)}, {one.factor} times: {told}")
        false += len(left)
        print(f"{' to '.join(pair)}: {len(of.values)} steps, {len(left)} false changes {left}")
    seen = [one for one in delays if one is not None]
    print(f"{len(seen)} of {len(delays)} changes found, {false} false, after {seen} repetitions")
    tests = f"{len(values)} tests by `wanbench campaign` of both directions"
    what = f"{len(changes)} changes of RTT by 5 to 25 % on a lab, {tests}"
    record(f"{what}: found", len(seen), "changes", bound=f"all {len(delays)}")
    record(f"{what}: false ones", false, "changes", bound="none")
    if seen:
        record(f"{what}: repetitions until found, in the median", median(seen), "repetitions")
    return 0 if len(seen) == len(delays) and not false else 1


if __name__ == "__main__":
    sys.exit(main())
