"""The role in docs/clouds/azure.md; it needs none of Azure's packages."""

import ast
import json
import re
from pathlib import Path

import wanbench
from wanbench.folders import root

TYPES = {
    "providers": "Resources/subscriptions/providers",
    "resource_groups": "Resources/subscriptions/resourceGroups",
    "resources": "DevTestLab/schedules",
    "resource_skus": "Compute/skus",
    "usage": "Compute/locations/usages",
    "usages": "Network/locations/usages",
    "virtual_machine_images": "Compute/locations/publishers/artifacttypes/offers/skus/versions",
    "virtual_machines": "Compute/virtualMachines",
    "network_security_groups": "Network/networkSecurityGroups",
    "security_rules": "Network/networkSecurityGroups/securityRules",
    "virtual_networks": "Network/virtualNetworks",
    "virtual_network_peerings": "Network/virtualNetworks/virtualNetworkPeerings",
    "public_ip_addresses": "Network/publicIPAddresses",
    "network_interfaces": "Network/networkInterfaces",
}


def test_the_role_in_the_docs_allows_what_the_code_calls():
    called = set()
    for path in (Path(wanbench.__file__).parent / "measure" / "labs" / "azure").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("call", "pages"):
                _, kind, operation = (each.value for each in node.args[:3])
                verb = "delete" if "delete" in operation else "write" if "create" in operation else "read"
                called.add(f"Microsoft.{TYPES[kind]}/{verb}")
    text = (root() / "docs" / "clouds" / "azure.md").read_text()
    allowed = set(json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL)[1])["Actions"])
    # What is made is read until it is done, and goes with its group; a host brings disks.
    within = ("security_rules", "virtual_network_peerings")
    made = {action.removesuffix("/write") for action in called if action.endswith("/write")}
    besides = {f"{kind}/read" for kind in made} | {f"Microsoft.Compute/disks/{verb}" for verb in ("read", "write")}
    made |= {"Microsoft.Compute/disks"}
    besides |= {f"{kind}/delete" for kind in made - {f"Microsoft.{TYPES[kind]}" for kind in within}}
    besides |= {
        f"Microsoft.Network/{each}/action"
        for each in (
            "networkInterfaces/join",
            "networkSecurityGroups/join",
            "publicIPAddresses/join",
            "virtualNetworks/peer",
            "virtualNetworks/subnets/join",
        )
    }
    besides |= {f"Microsoft.{each}/locations/operations/read" for each in ("Compute", "Network")}
    assert allowed == called | besides
