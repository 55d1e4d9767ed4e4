"""
A stand-in for Google's Compute API on this machine, over HTTP: it refuses what Google's description does not allow,
keeps what is made, and answers with operations that are pending for a while.
"""

import copy
import json
import re
import threading
import time
from collections import Counter
from urllib.parse import parse_qsl

from cloud_stub import LOOK_ALIKE
from gcp_description import Refused, checked
from lazily import lazily

compute_v1 = lazily("google.cloud.compute_v1")

PROJECT = "planted-project-7"
ZONES = {"europe-west1": ("b", "c"), "us-west1": ("a", "b"), "asia-southeast1": ("a",)}
NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL_KEY, LABEL_VALUE = re.compile(r"[a-z][a-z0-9_-]{0,62}"), re.compile(r"[a-z0-9_-]{0,63}")
PENDING_POLLS = 2
STOPPING_LISTS = 2
QUOTAS = {"CPUS": 24, "N2_CPUS": 24, "INSTANCES": 24, "IN_USE_ADDRESSES": 8, "SSD_TOTAL_GB": 500}
PROJECT_QUOTAS = {"CPUS_ALL_REGIONS": 32, "NETWORKS": 5, "SUBNETWORKS": 100, "FIREWALLS": 100}


class Cloud:
    """
    What the stand-in knows.

    Attributes
    ----------
    made : dict
        (kind, zone or region or "global", name) to its message.
    calls : Counter
        (service, operation) to how often it was asked for.
    faults : list of (service, operation, fault)
        Each is used once, by the next such call: a status and reason, a number of seconds for which nothing is
        answered, "lost" (done, but the answer is not heard of), or the code of an operation's error as text.
    """

    def __init__(self):
        self.lock, self.made, self.calls, self.faults = threading.RLock(), {}, Counter(), []
        self.operations, self.requests, self.stopping, self.addresses = {}, {}, {}, 0
        self.quotas, self.project_quotas, self.refused = dict(QUOTAS), dict(PROJECT_QUOTAS), []
        self.unreachable = None

    def with_others(self):
        """Make resources of others, whose names and tags resemble those of runs; return a copy of what is there."""
        kinds = {"networks": "global", "firewalls": "global", "subnetworks": "us-west1"}
        kinds |= dict.fromkeys(("disks", "instances"), "us-west1-a")
        texts = ["", "wanbench:run", '["wanbench:run"]', '"wanbench:run"', '{"wanbench:run": 5}']
        for number, described in enumerate([*map(json.dumps, LOOK_ALIKE), *texts]):
            for kind, place in kinds.items():
                name = f"wanbench-{number:016x}-hosts"
                made = getattr(compute_v1, kind[:-1].capitalize())(name=name, description=described)
                if kind == "instances":
                    made.network_interfaces = [compute_v1.NetworkInterface(subnetwork="theirs")]
                self.made[kind, place, name] = made
        return copy.deepcopy(self.made)

    def answer(self, verb, path, query, body):
        """Status, body and headers of an answer; None for none."""
        try:
            called, given = checked(verb, path, parse_qsl(query), body)
            return self._answered(*called, given)
        except Refused as refused:
            self.refused.append(refused.reason)
            return refused.status, {"error": {"code": refused.status, "message": refused.reason}}, {}

    def _answered(self, service, operation, given):
        called = (service, operation)
        with self.lock:
            self.calls[called] += 1
            fault = self._fault(*called)
        if isinstance(fault, float):
            time.sleep(fault)
            return None
        if isinstance(fault, tuple):
            raise Refused(*fault)
        if given["project"] not in (PROJECT, "ubuntu-os-cloud"):
            raise Refused(403, f"Permission denied on project '{given['project']}' for eve@example.org")
        with self.lock:
            told = getattr(self, f"_{operation}")(service, given, fault)
        return None if fault == "lost" else (200, json.loads(type(told).to_json(told)), {})

    def _fault(self, service, operation):
        for number, (*called, fault) in enumerate(self.faults):
            if called == [service, operation]:
                del self.faults[number]
                return fault
        return None

    # What is asked. ---------------------------------------------------------------------------------------------

    def _get(self, service, given, fault):
        if service == "projects":
            return compute_v1.Project(name=PROJECT, quotas=_quotas(self.project_quotas))
        key = given["operation"]
        if key not in self.operations:
            raise Refused(404, f"The resource 'projects/{PROJECT}/operations/{key}' was not found")
        operation = self.operations[key]
        operation["polls"] -= 1
        if operation["polls"] <= 0 and operation["told"].status != compute_v1.Operation.Status.DONE:
            operation["told"].status = compute_v1.Operation.Status.DONE
            operation["then"]()
        return operation["told"]

    def _get_from_family(self, service, given, fault):
        name = f"{given['family']}-v20261101".replace("lts", "noble")
        link = f"https://www.googleapis.com/compute/v1/projects/{given['project']}/global/images/{name}"
        return compute_v1.Image(name=name, self_link=link)

    def _list(self, service, given, fault):
        if service == "regions":
            return compute_v1.RegionList(
                items=[compute_v1.Region(name=name, status="UP", quotas=_quotas(self.quotas)) for name in ZONES]
            )
        found = [
            each
            for (kind, where, _), each in self._of(service, given)
            if kind == service and where == given.get("zone", where)
        ]
        return {
            "instances": compute_v1.InstanceList,
            "networks": compute_v1.NetworkList,
            "firewalls": compute_v1.FirewallList,
        }[service](items=found)

    def _aggregated_list(self, service, given, fault):
        title = {"machine_types": "MachineType"}.get(service, service[:-1].capitalize())
        scoped = getattr(compute_v1, "".join(w.capitalize() for w in service.split("_")) + "ScopedList")
        items = {}
        for region, letters in ZONES.items():
            places = [region] if service == "subnetworks" else [f"{region}-{letter}" for letter in letters]
            for place in places:
                if service == "machine_types":
                    wanted = given["filter"].split('"')[1]
                    here = [] if wanted == "n9-vast" else [
                        compute_v1.MachineType(name=wanted, zone=place, guest_cpus=2, architecture="X86_64")
                    ]  # fmt: skip
                else:
                    here = [each for (_, where, _), each in self._of(service, given) if where == place]
                how = {service: here} if here else {"warning": {"code": "NO_RESULTS_ON_PAGE"}}
                if place == self.unreachable:
                    how = {"warning": {"code": "UNREACHABLE"}}
                kind = "regions" if service == "subnetworks" else "zones"
                items[f"{kind}/{place}"] = scoped(**how)
        return getattr(compute_v1, f"{title}AggregatedList")(items=items)

    def _of(self, service, given):
        wanted = given.get("filter", "")
        for key, each in sorted(self.made.items()):
            if key[0] != service or not _matches(wanted, each):
                continue
            if key in self.stopping:
                self.stopping[key] -= 1
                if self.stopping[key] < 0:
                    self._gone(key)
                    continue
            yield key, each

    def _insert(self, service, given, fault):
        body, where = given["body"], given.get("region", "global")
        if again := self.requests.get(given.get("request_id")):
            return again
        self._check_made(body)
        if (service, where, body.name) in self.made:
            raise Refused(409, f"The resource 'projects/{PROJECT}/{service}/{body.name}' already exists")
        if "network" in type(body).meta.fields:
            self._there("networks", "global", body.network)
        if where != "global":
            body.region = f"projects/{PROJECT}/regions/{where}"
        return self._make(service, where, [body], given, "insert", fault)

    def _bulk_insert(self, service, given, fault):
        if again := self.requests.get(given.get("request_id")):
            return again
        body, zone = given["body"], given["zone"]
        wish, region = body.instance_properties, zone.rpartition("-")[0]
        if not re.fullmatch(r"[^#]+#+", body.name_pattern) or "/" in wish.machine_type:
            raise Refused(400, f"namePattern {body.name_pattern}, machineType {wish.machine_type}")
        [network_interface], marked = wish.network_interfaces, wish.labels
        self._there("subnetworks", region, network_interface.subnetwork)
        for key, value in [*marked.items(), *(each for d in wish.disks for each in d.initialize_params.labels.items())]:
            if not (LABEL_KEY.fullmatch(key) and LABEL_VALUE.fullmatch(value)):
                raise Refused(400, f"Invalid label {key}={value}")
        if wish.scheduling.max_run_duration.seconds < 30 or not wish.scheduling.instance_termination_action:
            raise Refused(400, "maxRunDuration needs 30 s and an instanceTerminationAction")
        stem, made = body.name_pattern.rstrip("#"), []
        for number in range(1, body.count + 1):
            self.addresses += 1
            access = compute_v1.AccessConfig(nat_i_p=f"203.0.113.{self.addresses}", type_="ONE_TO_ONE_NAT")
            inside = compute_v1.NetworkInterface(
                subnetwork=network_interface.subnetwork, network_i_p=f"10.0.0.{self.addresses}", access_configs=[access]
            )
            link = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/zones/{zone}"
            made.append(
                compute_v1.Instance(
                    name=f"{stem}{number:02}", labels=marked, zone=link, status="PROVISIONING",
                    network_interfaces=[inside], scheduling=wish.scheduling, metadata=wish.metadata,
                    description=wish.description,
                )
            )  # fmt: skip
            self._check_made(made[-1])
        if isinstance(fault, str) and fault != "lost":
            return self._make("instances", zone, [], given, "bulkInsert", fault)
        for instance in made:
            for number, disk in enumerate(wish.disks):
                name = f"{instance.name}-{number}"
                self.made["disks", zone, name] = compute_v1.Disk(
                    name=name,
                    zone=link,
                    status="READY",
                    users=[instance.name],
                    description=disk.initialize_params.description,
                )
        return self._make("instances", zone, made, given, "bulkInsert", fault)

    def _make(self, service, where, made, given, kind, fault):
        for each in made:
            self.made[service, where, each.name] = each

        def then():
            for each in made:
                if service == "instances" and each.status == "PROVISIONING":
                    each.status = "RUNNING"

        code = fault if isinstance(fault, str) and fault != "lost" else ""
        told = self._operation(kind, where, then, code)
        if given.get("request_id"):
            self.requests[given["request_id"]] = told
        return told

    def _delete(self, service, given, fault):
        where = given.get("zone") or given.get("region") or "global"
        name = given[{"firewalls": "firewall", "networks": "network"}.get(service, service[:-1])]
        if (service, where, name) not in self.made:
            raise Refused(404, f"The resource 'projects/{PROJECT}/{service}/{name}' was not found")
        users = {"networks": ("subnetworks", "firewalls"), "subnetworks": ("instances",)}.get(service, ())
        if used := [key for key in self.made if key[0] in users and self._uses(key, name)]:
            raise Refused(400, f"The {service} resource '{name}' is already being used by '{used[0][2]}'")
        key = (service, where, name)
        if service == "instances":
            self.made[key].status = "STOPPING"
            self.stopping.setdefault(key, STOPPING_LISTS)
        else:
            self._gone(key)
        return self._operation("delete", where, lambda: None, "")

    def _operation(self, kind, where, then, code):
        name = f"operation-{len(self.operations)}"
        link = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/{{}}/{where}"
        place = {} if where == "global" else (
            {"zone": link.format("zones")} if where not in ZONES else {"region": link.format("regions")}
        )  # fmt: skip
        error = {"errors": [{"code": code, "message": f"{code} in projects/{PROJECT}/zones/{where}"}]} if code else {}
        told = compute_v1.Operation(name=name, operation_type=kind, status="PENDING", error=error, **place)
        self.operations[name] = {"told": told, "polls": PENDING_POLLS, "then": then}
        return told

    def _gone(self, key):
        del self.made[key]
        self.stopping.pop(key, None)
        if key[0] == "instances":
            for disk in [each for each in self.made if each[0] == "disks" and key[2] in self.made[each].users]:
                del self.made[disk]

    def _uses(self, key, name):
        each = self.made[key]
        return (each.network_interfaces[0].subnetwork if key[0] == "instances" else each.network).endswith(f"/{name}")

    def _there(self, service, where, link):
        if (service, where, link.rpartition("/")[2]) not in self.made:
            raise Refused(404, f"The resource '{link}' was not found")

    @staticmethod
    def _check_made(body):
        if not NAME.fullmatch(body.name) or len(body.description) > 2048:
            raise Refused(400, f"Invalid value for field 'resource.name': '{body.name}'")


def _quotas(limits):
    return [compute_v1.Quota(metric=name, limit=limit, usage=0) for name, limit in limits.items()]


def _matches(wanted, each):
    """The filters of the API that are used here, and no others."""
    if not wanted:
        return True
    if found := re.fullmatch(r"name eq (\S+)", wanted):
        return bool(re.fullmatch(found[1], each.name))
    raise Refused(400, f"Invalid value for field 'filter': '{wanted}'")
