"""A stand-in for AWS on this machine, hosts on it that answer from a script, and a driver that can be killed."""

import base64
import gc
import json
import logging
import multiprocessing
import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import ClassVar

from cloud_stub import LOOK_ALIKE
from scripted_lab import Reply, ScriptedHost, well

from wanbench.measure.labs.aws import AwsLab, clients, lab, sweep, teardown
from wanbench.measure.labs.ssh import SshHost

REGIONS = ["aws:eu-west-1", "aws:us-east-1"]
CODES = [name.removeprefix("aws:") for name in REGIONS]
SETTLE_S = 0.3
ACCOUNT = "123456789012"
KEY_ID, SECRET, TOKEN = ("AKIAPLANTEDPLANTED00", "planted/secret+key/0000000000000000000", "planted-session-token")
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": KEY_ID,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": TOKEN,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_MAX_ATTEMPTS": "1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "WANBENCH_OPERATOR_ADDRESS": "192.0.2.7",
}
NET_DEV = b"Inter-|\n face |\n lo: 9 0 0 0 0 0 0 0 9 0\n ens5: 0 0 0 0 0 0 0 0 2000000000 0\n"
AT_START = ("cloud-init", "sysctl", "ip", "nft", "mountpoint")
"""Programs that prepare a host."""
FACTS = {
    "kernel": "6.1.0",
    "has_address": True,
    "manager": "dnf",
    "congestion_control": "cubic",
    "sysctls": {},
    "tools": {"iperf3": "3.16", "ping": "iputils"},
}


@contextmanager
def moto_server():
    """The address of a new AWS on this machine, and a function that says whether it answers nobody at the moment."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    logging.getLogger("moto").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port()), _is_idle
    finally:
        server.stop()


def _is_idle():
    return not [thread for thread in threading.enumerate() if "process_request" in thread.name]


def left_in(codes=CODES, account=ACCOUNT):
    """What the stand-in itself knows of, in these regions: not by the library's own listing."""
    from moto.ec2 import ec2_backends

    left = []
    for code in codes:
        backend = ec2_backends[account][code]
        instances = [each for one in backend.reservations.values() for each in one.instances]
        left += [each.id for each in instances if each.state != "terminated"]
        left += list(backend.key_pairs)
        left += list(backend.volumes)
        groups = [each for one in backend.groups.values() for each in one.values()]
        left += [each.id for each in groups if each.name != "default"]
    return left


@contextmanager
def with_others():
    """Have resources of others, whose tags resemble those of runs; the value is what the stand-in then has."""
    from moto.ec2 import ec2_backends

    for code in CODES:
        client = clients.Aws().client("ec2", code)
        for number, look_alike in enumerate(LOOK_ALIKE):
            tags = [{"Key": key, "Value": value} for key, value in look_alike.items()]
            tagged = {kind: [{"ResourceType": kind, "Tags": tags}] for kind in ("key-pair", "security-group", "volume")}
            name = f"wanbench-{number}"
            client.create_key_pair(KeyName=name, TagSpecifications=tagged["key-pair"])
            client.create_security_group(
                GroupName=name, Description="of others", TagSpecifications=tagged["security-group"]
            )
            client.create_volume(AvailabilityZone=f"{code}a", Size=1, TagSpecifications=tagged["volume"])
    yield left_in()
    for code in CODES:
        ec2_backends[ACCOUNT][code].reset()


def in_a_hurry():
    """Pauses for a stand-in that answers at once, and patience for a machine that does not."""
    lab.POLL_S = teardown.AwsResources.poll_s = 0.05
    clients.TIMEOUT_S = 300


def given_to(code, account=ACCOUNT):
    """The user data of the running host of a region, and the public key of its key pair."""
    from moto.ec2 import ec2_backends

    backend = ec2_backends[account][code]
    instances = [each for one in backend.reservations.values() for each in one.instances]
    [running] = [each for each in instances if each.state == "running"]
    [key_pair] = backend.key_pairs.values()
    return base64.b64decode(str(running.user_data)).decode(), key_pair.material_public.decode()


class HostHere(SshHost):
    """A host of a lab on AWS that is this machine, which keeps its addresses."""

    def run(self, command, **options):
        if command[0] in AT_START:
            command = ["true"]
        return super().run(command, **options)


class OpenedHost(SshHost):
    """A host of a lab on AWS that answers from a script; `files` are those that were put there."""

    def __init__(self, name, region, address, login, **how):
        super().__init__(name, region, address, login, **how)
        self.lab, self.files = _Script(), {}

    run, start = ScriptedHost.run, ScriptedHost.start

    def _connect(self):
        return _Connection(self.files)


class _Connection:
    hello: ClassVar = {"boot_id": "1", "scratch": "/scratch", "python": "python3"}
    is_open, reason = True, ""

    def __init__(self, files):
        self.files = files

    def ask(self, verb, data=b"", **arguments):
        if verb == "put":
            self.files[arguments["path"]] = self.files.get(arguments["path"], "") + data.decode()
        return {"ns": time.time_ns()}, b""

    def close(self):
        pass


class _Script:
    def __init__(self):
        self.processes = []

    @staticmethod
    def script(host, command):
        if command[0] == "cat":
            return Reply(NET_DEV)
        if "facts.py" in command[1]:
            return Reply(json.dumps(FACTS).encode())
        return Reply(b"6.1.0\n") if command[0] in (*AT_START, "test") else well(host, command)


def lab_on_aws(regions=REGIONS, **options):
    """A lab whose hosts answer from a script."""
    given = {"instance_type": "t3.micro", "yes": True, "connect": OpenedHost, "settle_s": SETTLE_S}
    return AwsLab(regions, **given | options)


def sweep_now(**options):
    """Sweep the regions of the tests."""
    return sweep(**{"yes": True, "regions": CODES, "settle_s": SETTLE_S} | options)


@contextmanager
def driver_to_be_killed():
    """
    A function that opens and closes a lab in a process of its own, killed when that makes its n-th call. It is forked
    from a process that was forked from this one before there were threads: to load the library anew takes seconds.
    """
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(target=_serve, args=(theirs,))
    server.start()

    def drive(killed_at):
        ours.send((dict(os.environ), killed_at))
        return ours.recv()

    try:
        yield drive
    finally:
        ours.send(None)
        server.join()


def _serve(pipe):
    gc.freeze()  # what the parent left to be collected may need threads that a fork does not have
    in_a_hurry()
    for service in ("ec2", "ssm", "sts"):
        clients.Aws().client(service, "us-east-1")  # reads its description, for all children
    while message := pipe.recv():
        environment, killed_at = message
        os.environ.update(environment)
        child = multiprocessing.get_context("fork").Process(target=_drive, args=(killed_at,))
        child.start()
        child.join()
        pipe.send(child.exitcode)


def _drive(killed_at):
    calls, lock, told = [0], threading.Lock(), clients.Aws._ask

    def counted(self, *arguments):
        with lock:
            calls[0] += 1
            if calls[0] == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return told(self, *arguments)

    clients.Aws._ask = counted
    with lab_on_aws(hosts_per_region=2):
        pass
