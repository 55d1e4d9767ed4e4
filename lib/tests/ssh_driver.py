"""A driver that measures a small plan on SSH hosts, as a process that tests may kill: DATA_FOLDER INVENTORY."""

import sys

from wanbench.measure.campaign import measure
from wanbench.measure.experiments import Iperf3, Ping
from wanbench.measure.labs.ssh import SshLab
from wanbench.measure.plan import make_plan

REGIONS = ("aws:eu-west-1", "aws:us-east-1", "gcp:us-west1")
# The window bounds throughput, so that it is the same whatever else the machine does.
PING, IPERF3 = Ping(count=5, interval_s=0.1), Iperf3(duration_s=1, omit_s=1, window_bytes=65_536)


def plan(n_pairs=2):
    one, two, three = REGIONS
    return make_plan(pairs=[(one, two), (three, one)][:n_pairs], experiments=[PING, IPERF3], rate_bps=20e6)


def carry_out(data_folder, inventory, n_pairs=2):
    lab = SshLab(REGIONS, inventory=inventory)
    return measure(plan(n_pairs), lab, data_folder=data_folder, campaign="ssh")


if __name__ == "__main__":
    carry_out(*sys.argv[1:])
