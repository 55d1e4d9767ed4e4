"""
Kill a driver of four hosts at each call of a cloud's API, and sweep: `python benchmarks/rented_sweep.py [gcp|azure]`.

The first driver is killed at its first call, the second at its second call, and so on until a driver ends by itself.
Fails if a sweep leaves anything. Stand-ins on this machine answer for Google Cloud and Azure.
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
import gcp_stub
from aws_driver import OpenedHost
from azure.core.pipeline.policies import SansIOHTTPPolicy
from cloud_stub import Current, killed_at_call, serve
from google.auth.credentials import AnonymousCredentials
from measured import record

from wanbench.measure.labs import azure, gcp
from wanbench.measure.labs.rented import leases

SETTLE_S = 0.05
QUICK = {"pause_s": 0.01, "poll_s": 0.005}


class Google:
    """Name what the benchmark uses of Google Cloud."""

    name, new, client, sweep = "gcp", gcp_stub.Cloud, gcp.clients.Gcp, staticmethod(gcp.sweep)
    lab, regions, instance_type = gcp.GcpLab, ["gcp:europe-west1", "gcp:us-west1"], "e2-small"

    @staticmethod
    def account(address):
        """A client of the stand-in."""
        how = {"project": gcp_stub.PROJECT, "credentials": AnonymousCredentials(), "endpoint": address}
        return gcp.clients.Gcp(**how, **QUICK)


class Azure:
    """Name what the benchmark uses of Azure."""

    name, new, client, sweep = "azure", azure_stub.Cloud, azure.clients.Azure, staticmethod(azure.sweep)
    lab, regions, instance_type = azure.AzureLab, ["azure:westeurope", "azure:eastus"], "Standard_B2s"

    @staticmethod
    def account(address):
        """A client of the stand-in."""
        how = {"subscription": azure_stub.SUBSCRIPTION, "credential": object(), "endpoint": address}
        return azure.clients.Azure(**how, **QUICK, authentication_policy=SansIOHTTPPolicy())


def drive(cloud, address, killed_at):
    """Open and close a lab; kill this process at call number `killed_at` of the API, if there are so many."""
    killed_at_call(cloud.client, killed_at)
    options = {"yes": True, "connect": OpenedHost, "settle_s": SETTLE_S, "hosts_per_region": 2}
    options |= {"instance_type": cloud.instance_type, "client": cloud.account(address)}
    with contextlib.redirect_stderr(io.StringIO()), cloud.lab(cloud.regions, **options):
        pass


def kill_at_each_call(cloud, address):
    """Kill drivers, and sweep after each; return whether each sweep left nothing and the last driver ended well."""
    kills, clean, left_any = 0, 0, 0
    while True:
        Current.cloud = cloud.new()
        Current.cloud.address = address
        driver = multiprocessing.get_context("fork").Process(target=drive, args=(cloud, address, kills + 1))
        driver.start()
        driver.join()
        if driver.exitcode != -signal.SIGKILL:
            break
        kills += 1
        left = len(Current.cloud.made)
        with contextlib.redirect_stdout(io.StringIO()):
            status = cloud.sweep(client=cloud.account(address), yes=True, settle_s=SETTLE_S)
        after = list(Current.cloud.made)
        clean += not after and status == 0 and not leases.free_leases()
        left_any += bool(left)
        print(f"kill {kills}: left {left} resources; after the sweep {after or 'nothing'}", flush=True)
    print(f"{cloud.name}: {kills} kills: {left_any} left something, a sweep left nothing after {clean}")
    what = f"kills of a driver of 4 hosts on a stand-in for {cloud.name} after which `sweep` left nothing"
    record(what, clean, f"of {kills}", bound="all", peer="kills that left something", of_peer=left_any)
    return kills == clean and driver.exitcode == 0


def main():
    """Try the clouds named on the command line, or both."""
    gcp.teardown.GcpResources.poll_s = azure.teardown.AzureResources.poll_s = 0.02
    with serve(Current) as address:
        asked = [cloud for cloud in (Google, Azure) if cloud.name in (sys.argv[1:] or ("gcp", "azure"))]
        clean = [kill_at_each_call(cloud, address) for cloud in asked]
        return 0 if clean and all(clean) else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"WANBENCH_DATA": folder, "WANBENCH_OPERATOR_ADDRESS": "192.0.2.7"}
        sys.exit(main())
