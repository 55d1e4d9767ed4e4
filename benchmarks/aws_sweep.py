"""
Kill a driver of 46 hosts in 20 regions at 10 random moments, and sweep after each: `python benchmarks/aws_sweep.py`.

Prints what each kill left, and fails if a sweep leaves anything. moto's server stands in for AWS, on this machine over
HTTP. WANBENCH_KILLS=50 kills fifty times.
"""

import contextlib
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lib" / "tests"))
import aws_driver
from measured import record

from wanbench.measure.labs.aws import clients, preflight, sweep
from wanbench.measure.labs.rented import leases

KILLS, SEED = int(os.environ.get("WANBENCH_KILLS", "10")), 14
N_REGIONS = 20


def drive(codes):
    """Open two labs at the same time: two hosts in each region, and one more in each of the first six regions."""
    aws_driver.in_a_hurry()
    names = [f"aws:{code}" for code in codes]
    with aws_driver.lab_on_aws(names, hosts_per_region=2), aws_driver.lab_on_aws(names[:6]):
        print("open", flush=True)
    print("closed", flush=True)


def offers(aws, code):
    """Return whether a region offers the instance type; moto offers none in its newest regions."""
    wanted = [{"Name": "instance-type", "Values": ["t3.micro"]}]
    of_zones = {"LocationType": "availability-zone", "Filters": wanted}
    return bool(aws.pages("ec2", code, "describe_instance_type_offerings", "InstanceTypeOfferings", **of_zones))


def start(codes):
    """Start a driver as a process; return it once it has loaded everything and begins."""
    command = [sys.executable, __file__, *codes]
    driver = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    driver.stdout.readline()
    driver.stdin.write("\n")
    driver.stdin.flush()
    return driver


def end(driver):
    """Kill a driver; return whether it was still running."""
    running = driver.poll() is None
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    driver.stdin.close()
    driver.stdout.close()
    return running


def main():
    draw, aws = random.Random(SEED), clients.Aws()
    aws_driver.in_a_hurry()
    everywhere = preflight.enabled_regions(aws, "us-east-1")
    codes = [code for code in everywhere if offers(aws, code)][:N_REGIONS]
    driver = start(codes)
    started = time.monotonic()
    for word in ("open", "closed"):
        assert driver.stdout.readline().strip() == word
        print(f"{word} after {time.monotonic() - started:.1f} s")
        if word == "open":
            print(f"  {Counter(text.split('-')[0] for text in aws_driver.left_in(codes))}")
    end(driver)
    lasts_s = time.monotonic() - started
    kills, clean, left_any, sweeps_s = 0, 0, 0, []
    while kills < KILLS:
        driver = start(codes)
        time.sleep(draw.uniform(0, lasts_s))
        if not end(driver):
            continue
        kills += 1
        left = Counter(text.split("-")[0] for text in aws_driver.left_in(codes))
        began, said = time.monotonic(), io.StringIO()
        with contextlib.redirect_stdout(said):
            status = sweep(yes=True)
        sweeps_s.append(time.monotonic() - began)
        after = aws_driver.left_in(everywhere)
        clean += not after and status == 0 and not leases.free_leases()
        left_any += bool(left)
        print(
            f"kill {kills}: left {dict(left)}; after the sweep ({sweeps_s[-1]:.1f} s) {after or 'nothing'}", flush=True
        )
    print(
        f"{kills} kills of 46 hosts in {len(codes)} regions, {left_any} left something behind; the sweep of "
        f"{len(everywhere)} regions left nothing in {clean} of {kills} (it took {max(sweeps_s):.0f} s at most)."
    )
    what = "kills of a driver of 46 hosts on moto's AWS after which `sweep` left nothing"
    record(what, clean, f"of {kills}", bound="all", peer="kills that left something", of_peer=left_any)
    return 0 if clean == kills else 1


if __name__ == "__main__":
    if sys.argv[1:]:
        import boto3  # noqa: F401

        print("ready", flush=True)
        sys.stdin.readline()
        drive(sys.argv[1:])
        sys.exit()
    with tempfile.TemporaryDirectory() as folder, aws_driver.moto_server() as (address, _):
        os.environ.update(aws_driver.ENVIRONMENT, AWS_ENDPOINT_URL=address, WANBENCH_DATA=folder)
        sys.exit(main())
