"""A stand-in for AWS, and a driver that can be killed: both for tests of hosts on AWS."""

import logging
import os
import time
from contextlib import contextmanager

from scripted_lab import ScriptedHost

from wanbench.labs.aws import AwsLab
from wanbench.labs.aws.clients import Aws

ACCOUNT = "123456789012"
KEY_ID, SECRET, TOKEN = "AKIAPLANTEDPLANTED00", "planted/secret+key00000000000000000000", "planted-session-token"
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


@contextmanager
def moto_server():
    """The address of a new, empty AWS on this machine."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


class OpenedHost(ScriptedHost):
    """A host of a lab on AWS that answers from a script; keeps how it was to be reached."""

    def __init__(self, name, region, address, **how):
        super().__init__(None, region, 0)
        self.name, self.address, self.how = name, address, how
