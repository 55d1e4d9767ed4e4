"""
Kills a driver of four hosts in two regions at each of its calls of Azure's Resource Manager, one after the other, and
sweeps after each: fails if a sweep leaves anything. Azure is a stand-in on this machine, over HTTP.
"""

import contextlib
import io
import multiprocessing
import os
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lib" / "tests"))
import azure_stub
from aws_driver import OpenedHost
from azure.core.pipeline.policies import SansIOHTTPPolicy

from wanbench.labs.azure import AzureLab, clients, sweep, teardown
from wanbench.labs.rented import leases

SETTLE_S = 0.05


class Current:
    """The stand-in of the moment: a new one for every kill."""

    cloud = None

    @staticmethod
    def answer(*asked):
        return Current.cloud.answer(*asked)


def subscription(address):
    how = {"subscription": azure_stub.SUBSCRIPTION, "credential": object(), "endpoint": address}
    return clients.Azure(**how, pause_s=0.01, poll_s=0.005, authentication_policy=SansIOHTTPPolicy())


def drive(address, killed_at):
    """Open and close a lab; killed at this call, if there are so many."""
    calls, told = [0], clients.Azure._told

    def counted(self, *arguments):
        calls[0] += 1
        if calls[0] == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return told(self, *arguments)

    clients.Azure._told = counted
    options = {"instance_type": "Standard_B2s", "yes": True, "connect": OpenedHost, "settle_s": SETTLE_S}
    with (
        contextlib.redirect_stderr(io.StringIO()),
        AzureLab(
            ["azure:westeurope", "azure:eastus"], azure=subscription(address), hosts_per_region=2, **options
        ),
    ):
        pass


def main():
    teardown.POLL_S = 0.02
    kills, clean, left_any = 0, 0, 0
    with azure_stub.serve(Current) as address:
        while True:
            Current.cloud = azure_stub.Cloud()
            Current.cloud.address = address
            driver = multiprocessing.get_context("fork").Process(target=drive, args=(address, kills + 1))
            driver.start()
            driver.join()
            if driver.exitcode != -signal.SIGKILL:
                break
            kills += 1
            left = len(Current.cloud.made)
            with contextlib.redirect_stdout(io.StringIO()):
                status = sweep(azure=subscription(address), yes=True, settle_s=SETTLE_S)
            after = list(Current.cloud.made)
            clean += not after and status == 0 and not leases.free_leases()
            left_any += bool(left)
            print(f"kill {kills}: left {left} resources; after the sweep {after or 'nothing'}", flush=True)
    print(f"{kills} kills: {left_any} left something, a sweep left nothing after {clean}")
    return 0 if kills == clean and driver.exitcode == 0 else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"WANBENCH_DATA": folder, "WANBENCH_OPERATOR_ADDRESS": "192.0.2.7"}
        sys.exit(main())
