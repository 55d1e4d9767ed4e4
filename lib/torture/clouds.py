"""
Kill a driver of rented hosts and sweep, on a stand-in for a cloud: `python -m torture.clouds aws|gcp|azure SEED`.

Beside the driver's hosts stand resources of others, whose tags look alike. The last line says what is left of the
driver's, and whether those of others were touched; the status is 1 if either is so.
"""

from __future__ import annotations

import contextlib
import gc
import io
import multiprocessing
import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import aws_driver

from wanbench.measure.labs.rented import leases

CALLS = {"aws": (13, 48), "gcp": (6, 32), "azure": (14, 29)}
"""From the first call that makes something to the last before all is taken down."""


def on_aws(call: int) -> tuple:
    """Kill a driver at a call of moto's AWS, and sweep; return what the line says."""
    with aws_driver.driver_to_be_killed() as drive, aws_driver.moto_server() as (address, _):
        os.environ.update(aws_driver.ENVIRONMENT, AWS_ENDPOINT_URL=address)
        aws_driver.in_a_hurry()
        with aws_driver.with_others() as others:
            killed, made = drive(call), len(aws_driver.left_in()) - len(others)
            status, now = aws_driver.sweep_now(), aws_driver.left_in()
        touched = set(others) - set(now)
        return killed, status, made, len(set(now) - set(others)), len(touched), len(others)


def on_stand_in(name: str, call: int) -> tuple:
    """Do the same on the stand-in for Google Cloud or Azure."""
    import rented_sweep as benchmark
    from cloud_stub import Current, serve

    cloud = {"gcp": benchmark.Google, "azure": benchmark.Azure}[name]
    benchmark.gcp.teardown.GcpResources.poll_s = benchmark.azure.teardown.AzureResources.poll_s = 0.02
    os.environ["WANBENCH_OPERATOR_ADDRESS"] = "192.0.2.7"
    Current.cloud = cloud.new()
    others = Current.cloud.with_others()
    with serve(Current) as Current.cloud.address:
        driver = multiprocessing.get_context("fork").Process(
            target=benchmark.drive, args=(cloud, Current.cloud.address, call)
        )
        gc.freeze()  # what is left to be collected may need threads that a fork does not have
        driver.start()
        driver.join()
        made = len(Current.cloud.made) - len(others)
        client = cloud.account(Current.cloud.address)
        status, now = cloud.sweep(client=client, yes=True, settle_s=benchmark.SETTLE_S), Current.cloud.made
        touched = sum(now.get(key) != each for key, each in others.items())
        return driver.exitcode, status, made, len(now.keys() - others.keys()), touched, len(others)


def main(name: str, seed: str) -> int:
    """Kill, sweep and look; return the status."""
    call = random.Random(int(seed)).randrange(*CALLS[name])
    with contextlib.redirect_stdout(io.StringIO()):
        told = on_aws(call) if name == "aws" else on_stand_in(name, call)
    killed, status, made, left, touched, others = told
    print(
        f"killed at call {call} (status {killed}), it left {made}; after the sweep (status {status}) {left} are left, "
        f"and {touched} of {others} of others are touched."
    )
    return int(bool(left or touched or status or leases.free_leases()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
