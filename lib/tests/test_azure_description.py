"""The stand-in for Azure refuses what the models of Azure's packages do not allow."""

import re

import pytest

pytest.importorskip("azure.mgmt.network", reason="the extra azure is not installed")

from azure_description import Refused, checked

PLACE = {"location": "eastus"}


@pytest.mark.parametrize(
    "kind, body, said",
    [
        ("virtualMachines", PLACE | {"nam": 1}, "virtualMachines.nam must be a field of VirtualMachine"),
        ("virtualMachines", PLACE | {"etag": "1"}, "etag must be left out, as it is read-only"),
        ("virtualMachines", {}, "virtualMachines.location must be given"),
        ("virtualMachines", PLACE | {"zones": "1"}, "virtualMachines.zones must be a list"),
        (
            "virtualMachines",
            PLACE | {"properties": {"storageProfile": {"osDisk": {"createOption": "Sideways"}}}},
            "createOption must be one of FromImage, Empty",
        ),
        (
            "networkSecurityGroups",
            PLACE | {"properties": {"securityRules": [{"properties": {"priority": "high"}}]}},
            "securityRules[0].properties.priority must be of type int",
        ),
        ("virtualNetworks", PLACE | {"tags": {"a": 1}}, "virtualNetworks.tags.a must be of type str"),
    ],
)  # fmt: skip
def test_what_the_packages_do_not_describe_is_refused(kind, body, said):
    with pytest.raises(Refused, match=re.escape(said)) as refused:
        checked(kind, body)
    assert refused.value.status == 400


def test_what_the_packages_describe_is_not_refused():
    zones = {"zones": ["1"], "properties": {"hardwareProfile": {"vmSize": "Standard_Newer_v9"}}}
    assert checked("virtualMachines", PLACE | zones) == PLACE | zones
