"""
Kill a driver of rented hosts and sweep, on moto's stand-in for AWS: `python -m torture.clouds SEED`.

Beside the driver's hosts stand resources of others, whose tags look alike. The last line says what is left of the
driver's, and whether those of others were touched; the status is 1 if either is so.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import aws_driver
from cloud_stub import LOOK_ALIKE

from wanbench.measure.labs.aws import clients
from wanbench.measure.labs.rented import leases

CALLS = 48  # a driver makes some 50 calls


def of_others(aws) -> set[str]:
    """Make a key pair, a security group and a volume with each of the tags; return what the stand-in then has."""
    for code in aws_driver.CODES:
        client = aws.client("ec2", code)
        for number, look_alike in enumerate(LOOK_ALIKE):
            tags = [{"Key": key, "Value": value} for key, value in look_alike.items()]
            tagged = {kind: [{"ResourceType": kind, "Tags": tags}] for kind in ("key-pair", "security-group", "volume")}
            name = f"wanbench-{number}"
            client.create_key_pair(KeyName=name, TagSpecifications=tagged["key-pair"])
            client.create_security_group(
                GroupName=name, Description="of others", TagSpecifications=tagged["security-group"]
            )
            client.create_volume(AvailabilityZone=f"{code}a", Size=1, TagSpecifications=tagged["volume"])
    return set(aws_driver.left_in())


def main(seed: int, drive) -> int:
    """Kill, sweep and look; return the status."""
    others = of_others(clients.Aws())
    call = random.Random(seed).randrange(13, CALLS)
    killed = drive(call)
    made = set(aws_driver.left_in()) - others
    with contextlib.redirect_stdout(io.StringIO()):
        status = aws_driver.sweep_now()
    left = set(aws_driver.left_in()) - others
    touched = others - set(aws_driver.left_in())
    print(
        f"killed at call {call} (status {killed}), it left {len(made)}; after the sweep (status {status}) {len(left)} "
        f"are left, and {len(touched)} of {len(others)} of others are touched."
    )
    return int(bool(left or touched or status or leases.free_leases()))


if __name__ == "__main__":
    with aws_driver.driver_to_be_killed() as drive, aws_driver.moto_server() as (address, _):
        os.environ.update(aws_driver.ENVIRONMENT, AWS_ENDPOINT_URL=address)
        aws_driver.in_a_hurry()
        sys.exit(main(int(sys.argv[1]), drive))
