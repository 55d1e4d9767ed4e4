"""Short measurements on a scripted lab, for the tests of measuring."""

import json
import threading
from pathlib import Path

from scripted_lab import PING_TEXT, Reply, well

from wanbench.measure.campaign.execute import measure
from wanbench.measure.experiments import Iperf3, Ping
from wanbench.measure.plan import make_plan
from wanbench.runs import Run

REGIONS = ["aws:r-1", "aws:r-2", "gcp:r-3", "gcp:r-4"]


EXPERIMENTS = (Ping(count=1), Iperf3(duration_s=1))


RTTS = {(a, b): 10.0 for a in REGIONS for b in REGIONS}


def plan_of(experiments=EXPERIMENTS, **arguments):
    return make_plan(regions=REGIONS, experiments=experiments, rtt_ms=RTTS, **arguments)


def go(folder, lab, plan=None, **arguments) -> Run:
    return measure(plan or plan_of(), lab, data_folder=folder, campaign="test", **arguments)


def outcomes(run: Run) -> dict[str, list[str]]:
    table = run.tests()
    return {test_id: list(group["outcome"]) for test_id, group in table.groupby("test_id")}


def newest(folder) -> Run:
    (path,) = (Path(folder) / "raw/test").glob("*/journal.jsonl")
    return Run.open(path.parent)


def threads_of_tests():
    return [thread for thread in threading.enumerate() if thread.name[:4].isdigit()]


def failing(region, tool, times):
    """The tool fails on the region's host so many times."""
    left = [times]
    lock = threading.Lock()

    def script(host, command):
        with lock:
            if host.region == region and command[0] == tool and left[0] > 0 and "-s" not in command[:2]:
                left[0] -= 1
                if tool == "ping":
                    return Reply(b"", b"ping: Network is unreachable\n", 2)
                return Reply(json.dumps({"error": "unable to connect"}).encode(), returncode=1)
        return well(host, command)

    return script


def stopping_after(n, stop):
    """Everything works until the nth ping, where `stop` is called."""
    count, lock = [0], threading.Lock()

    def script(host, command):
        with lock:
            if command[0] == "ping":
                count[0] += 1
            if count[0] == n:
                count[0] += 1
                stop()
                return Reply(PING_TEXT, lasts_s=None)
        return well(host, command)

    return script
