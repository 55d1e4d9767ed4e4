"""
A stand-in for Azure's Resource Manager on this machine, over HTTP: it refuses what the packages' models do not allow,
keeps what is made, and answers with operations that are under way for a while.
"""

import copy
import json
import re
import threading
import time
from collections import Counter
from urllib.parse import parse_qs

from azure_description import Refused, checked
from cloud_stub import LOOK_ALIKE

SUBSCRIPTION = "5ec2e700-0000-4000-8000-00000000f00d"
REGIONS = {"westeurope": "West Europe", "eastus": "East US", "norwaywest": "Norway West"}
ZONES = {"westeurope": ["2", "1"], "eastus": ["1"], "norwaywest": []}
SIZES = {
    "Standard_B2s": {"vCPUs": "2", "HyperVGenerations": "V1,V2", "AcceleratedNetworkingEnabled": "False"},
    "Standard_D2pls_v6": {
        "vCPUs": "2",
        "HyperVGenerations": "V2",
        "CpuArchitectureType": "Arm64",
        "DiskControllerTypes": "NVMe",
        "AcceleratedNetworkingEnabled": "True",
    },
}
COMPUTE_QUOTAS = {"cores": 20, "standardBSFamily": 10, "virtualMachines": 100}
NETWORK_QUOTAS = {"PublicIPAddresses": 10, "StandardSkuPublicIpAddresses": 10, "NetworkInterfaces": 100}
PENDING_POLLS = 2
DELETING_LISTS = 2
ROOT = f"/subscriptions/{SUBSCRIPTION}/"


class Cloud:
    """
    What the stand-in knows.

    Attributes
    ----------
    made : dict
        Path below the subscription, in small letters, to what is there.
    calls : Counter
        (verb, kind) to how often it was asked for; the kind is the last type in the path, such as "virtualMachines".
    faults : list of (verb, kind, fault)
        Each is used once, by the next such call: a status, code and message, a number of seconds for which nothing is
        answered, "lost" (done, but the answer is not heard of), or the code of an operation's error as text.
    """

    def __init__(self):
        self.lock, self.made, self.calls, self.faults = threading.RLock(), {}, Counter(), []
        self.operations, self.deleting, self.addresses, self.refused = {}, {}, 0, []
        self.address = ""
        self.quotas, self.unregistered, self.not_stopping = COMPUTE_QUOTAS | NETWORK_QUOTAS, (), ()

    def with_others(self):
        """Make groups of others, whose names and tags resemble those of runs; return a copy of what is there."""
        for number, tags in enumerate(LOOK_ALIKE):
            name = f"wanbench-{number:016x}-westeurope"
            group = {"name": name, "location": "westeurope", "tags": dict(tags), "properties": {}}
            self.made[f"resourcegroups/{name}"] = group
        return copy.deepcopy(self.made)

    def answer(self, verb, path, query, body):
        """Status, body and headers of an answer; None for none."""
        query = parse_qs(query)
        try:
            if not path.startswith(ROOT):
                raise Refused(404, "InvalidSubscriptionId", f"The subscription of {path} is not known.")
            if "api-version" not in query:
                raise Refused(400, "MissingApiVersionParameter", "The api-version is missing.")
            parts = path.removeprefix(ROOT).split("/")
            kind = parts[-1] if len(parts) % 2 else parts[-2]
            with self.lock:
                self.calls[verb, kind] += 1
                fault = self._fault(verb, kind)
            if isinstance(fault, float):
                time.sleep(fault)
                return None
            if isinstance(fault, tuple):
                raise Refused(*fault)
            with self.lock:
                told = self._answered(verb, parts, kind, query, body, fault)
            return None if fault == "lost" else told
        except Refused as refused:
            self.refused.append(refused.reason)
            return refused.status, {"error": {"code": refused.code, "message": refused.reason}}, {}

    def _fault(self, verb, kind):
        for number, (*called, fault) in enumerate(self.faults):
            if called == [verb, kind]:
                del self.faults[number]
                return fault
        return None

    def _answered(self, verb, parts, kind, query, body, fault):
        key = "/".join(parts).lower()
        if verb == "PUT":
            return self._put(parts, key, kind, checked(kind, json.loads(body)), fault)
        if verb == "DELETE":
            return self._delete(parts, key, kind, query)
        if kind == "operations":
            return self._operation(parts[-1])
        if kind in ("skus", "usages", "versions") or parts[0] == "providers":
            return 200, self._known(parts, kind, query), {}
        if len(parts) % 2:
            return 200, self._listed(key, kind, int(query.get("$skiptoken", ["0"])[0])), {}
        if key not in self.made:
            raise Refused(404, "ResourceNotFound", f"The resource '{ROOT}{key}' was not found.")
        return 200, self.made[key], {}

    # What is there without a lab. -------------------------------------------------------------------------------

    def _known(self, parts, kind, query):
        if kind == "skus":
            region = re.fullmatch(r"location eq '(\w+)'", query["$filter"][0])[1]
            return {"value": [_sku(name, region) for name in SIZES]}
        if kind == "usages":
            quotas = COMPUTE_QUOTAS if parts[1] == "Microsoft.Compute" else NETWORK_QUOTAS
            told = [(name, self.quotas[name]) for name in quotas]
            return {"value": [_usage(name, limit) for name, limit in told]}
        if kind == "versions":
            if query["$top"] != ["1"] or query["$orderby"] != ["name desc"]:
                raise Refused(400, "InvalidParameter", "not the newest version")
            return [{"name": "24.04.202611010", "location": parts[3], "id": f"{ROOT}{'/'.join(parts)}"}]
        kinds = {"Microsoft.Compute": "virtualMachines", "Microsoft.Network": "virtualNetworks"}
        without = self.not_stopping if parts[1] == "Microsoft.DevTestLab" else ()
        places = [title for name, title in REGIONS.items() if name not in without]
        state = "NotRegistered" if parts[1] in self.unregistered else "Registered"
        resource_type = {"resourceType": kinds.get(parts[1], "schedules"), "locations": places}
        return {"namespace": parts[1], "registrationState": state, "resourceTypes": [resource_type]}

    # What a lab makes. ------------------------------------------------------------------------------------------

    def _put(self, parts, key, kind, body, fault):
        made = {"id": ROOT + "/".join(parts), "name": parts[-1], **copy.deepcopy(body)}
        properties = made.setdefault("properties", {})
        if body.get("location", "westeurope") not in REGIONS:
            raise Refused(400, "LocationNotAvailableForResourceType", f"no region {body['location']}")
        if any(re.search(r"[<>%&\\?/]", name) for name in body.get("tags", {})):
            raise Refused(400, "InvalidTagNameCharacters", f"tags {body['tags']}")
        if kind == "resourcegroups":
            properties["provisioningState"] = "Succeeded"
            self.made[key] = made
            return 201, made, {}
        group = self._there("/".join(parts[:2]))
        if group["properties"]["provisioningState"] == "Deleting":
            raise Refused(409, "ResourceGroupBeingDeleted", f"The group '{parts[1]}' is being deleted.")
        if len(parts) > 6:
            self._there("/".join(parts[:6]))
        for path in _references(body):
            self._there(path.removeprefix(ROOT))
        properties["provisioningState"] = "Creating"
        failed = fault if isinstance(fault, str) and fault != "lost" else None
        if kind == "virtualMachines":
            self._check_machine(made, key)
        if kind in ("networkInterfaces", "publicIPAddresses"):
            self._give_address(properties, key)
        if kind == "schedules" and not re.fullmatch(r"shutdown-computevm-[\w-]+", parts[-1]):
            raise Refused(400, "InvalidScheduleId", parts[-1])
        self.made[key] = made

        def then():
            properties["provisioningState"] = "Failed" if failed else "Succeeded"

        return 201, made, self._started(then, failed)

    def _check_machine(self, made, key):
        before = self.made.get(key)
        if before and before.get("zones") != made.get("zones"):
            raise Refused(409, "PropertyChangeNotAllowed", "zones cannot be changed")
        if not set(made.get("zones", [])) <= set(ZONES[made["location"]]):
            raise Refused(400, "InvalidZone", f"zones {made['zones']}")
        if made["properties"]["hardwareProfile"]["vmSize"] not in SIZES:
            raise Refused(400, "InvalidParameter", "vmSize")
        [interface] = made["properties"]["networkProfile"]["networkInterfaces"]
        self._check_unused(interface["id"], but=key)

    def _give_address(self, properties, key):
        given = self.made.get(key, {}).get("properties", {})
        if "ipConfigurations" in properties:
            [inside] = (each["properties"] for each in properties["ipConfigurations"])
            self._check_unused(inside["publicIPAddress"]["id"], but=key)
            before = [each["properties"] for each in given.get("ipConfigurations", [])]
            inside["privateIPAddress"] = before[0]["privateIPAddress"] if before else f"10.0.0.{self._next()}"
        else:
            properties["ipAddress"] = given.get("ipAddress") or f"203.0.113.{self._next()}"

    def _next(self):
        self.addresses += 1
        return self.addresses

    def _check_unused(self, path, but=None):
        users = [key for key, each in self.made.items() if key != but and path in _references(each["properties"])]
        if users:
            raise Refused(409, "InUse", f"{path} is in use by {users[0]}")

    def _delete(self, parts, key, kind, query):
        if kind != "resourcegroups" and key not in self.made:
            return 204, None, {}
        made = self._there(key)
        if kind == "resourcegroups":
            if query.get("forceDeletionTypes") != ["Microsoft.Compute/virtualMachines"]:
                raise Refused(400, "InvalidParameter", "forceDeletionTypes")
            made["properties"]["provisioningState"] = "Deleting"
            self.deleting.setdefault(key, DELETING_LISTS)
            return 202, None, {"Location": f"{ROOT}operations/0?api-version=1"}
        if kind != "virtualMachines":
            self._check_unused(made["id"])
        del self.made[key]
        return 202, None, self._started(lambda: None, None)

    def _listed(self, key, kind, skip):
        """Groups, one to a page."""
        if kind != "resourcegroups":
            raise Refused(404, "InvalidResourceType", f"{kind} are not listed")
        for group in list(self.deleting) if not skip else ():
            self.deleting[group] -= 1
            if self.deleting[group] < 0:
                del self.deleting[group]
                self.made = {path: each for path, each in self.made.items() if not f"{path}/".startswith(f"{group}/")}
        groups = [each for path, each in self.made.items() if path.count("/") == 1]
        more = {"nextLink": f"{self.address}{ROOT}{key}?api-version=1&$skiptoken={skip + 1}"}
        return {"value": groups[skip : skip + 1]} | (more if skip + 1 < len(groups) else {})

    def _started(self, then, failed):
        name = str(len(self.operations) + 1)
        self.operations[name] = [PENDING_POLLS, then, failed]
        return {"Azure-AsyncOperation": f"{ROOT}operations/{name}?api-version=1"}

    def _operation(self, name):
        told = self.operations[name]
        told[0] -= 1
        if told[0] > 0:
            return 200, {"status": "InProgress"}, {}
        told[1]()
        if failed := told[2]:
            error = {"code": failed, "message": f"{failed} in {ROOT} for eve@example.org"}
            return 200, {"status": "Failed", "error": error}, {}
        return 200, {"status": "Succeeded"}, {}

    def _there(self, path):
        parent, _, name = path.lower().rpartition("/")
        found = self.made.get(path.lower())
        if found is None and parent.endswith("/subnets"):
            network = self.made.get(parent.removesuffix("/subnets"), {"properties": {"subnets": []}})
            found = next((each for each in network["properties"]["subnets"] if each["name"] == name), None)
        if found is None:
            raise Refused(404, "ResourceNotFound", f"The resource '{ROOT}{path}' was not found.")
        return found


def _references(body):
    """The ids of other resources in a body."""
    for name, each in body.items() if isinstance(body, dict) else enumerate(body):
        if name in ("id", "targetResourceId") and isinstance(each, str):
            yield each
        elif isinstance(each, dict | list):
            yield from _references(each)


def _sku(name, region):
    return {
        "resourceType": "virtualMachines",
        "name": name,
        "family": "standardBSFamily",
        "locations": [region],
        "locationInfo": [{"location": region, "zones": ZONES[region]}],
        "capabilities": [{"name": each, "value": value} for each, value in SIZES[name].items()],
        "restrictions": [
            {"type": "Zone", "reasonCode": "NotAvailableForSubscription", "restrictionInfo": {"zones": ["3"]}}
        ],
    }


def _usage(name, limit):
    return {"name": {"value": name, "localizedValue": name}, "limit": limit, "currentValue": 0, "unit": "Count"}
