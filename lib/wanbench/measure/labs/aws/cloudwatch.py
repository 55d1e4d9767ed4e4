"""Save CloudWatch's metrics of MSK brokers, instances, VPN tunnels and Direct Connect during a session as raw files."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

from wanbench.checks import check_choice, check_name, check_number, refusal
from wanbench.measure.labs.rented.client import CloudError
from wanbench.runs import RawFile, write_raw
from wanbench.runs.journal import now_utc

from .clients import Aws, without_identities

MAX_QUERIES = 500  # Maximum number of queries in one request (CloudWatch's limit).
POLL_S = 15.0
# Error codes of temporary refusals, after which requests are repeated; botocore has already repeated them at once.
THROTTLED = ("Throttling", "ThrottlingException", "ThrottledException", "RequestLimitExceeded", "InternalServiceFault")


METRICS = list(csv.DictReader(Path(__file__).with_name("cloudwatch_metrics.csv").read_text().splitlines()))
"""The metrics by kind of resource, with their dimension and the shortest period (s) without extra cost."""
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")
_ACCOUNT = re.compile(r"(?<!\d)\d{12}(?!\d)|^arn:")


@dataclass(frozen=True)
class Watched:
    """
    A resource whose metrics are fetched.

    Parameters
    ----------
    kind : str
        "msk", "instance", "vpn" or "direct-connect".
    region : str
        AWS's own name for the region.
    id : str
        The name of the MSK cluster; the id of the instance, VPN connection or Direct Connect connection; or the outside
        address of a VPN's tunnel. Not an ARN, which contains the account. Files do not contain the id.
    name : str
        Name of the resource in files and tables.
    brokers : int
        Number of brokers, if the resource is an MSK cluster.
    period_s : int, optional
        Period of the data points, a multiple of 60; by default the shortest without extra cost.
    """

    kind: str
    region: str
    id: str
    name: str
    brokers: int = 0
    period_s: int | None = None

    def __post_init__(self):
        check_choice("kind", self.kind, dict.fromkeys(row["kind"] for row in METRICS))
        for field in ("region", "id", "name"):
            if _ACCOUNT.search(check_name(field, getattr(self, field))):
                raise refusal(field, "(not shown)", "a name or id, without the account; so no ARN and no account id")
        check_number("period_s", self.period_s, 60, 3600, whole=True, optional=True)
        if (self.period_s or 60) % 60:
            raise refusal("period_s", self.period_s, "a multiple of 60")
        check_number("brokers", self.brokers, int(self.kind == "msk"), 100 * (self.kind == "msk"), whole=True)

    def series(self) -> list[dict[str, Any]]:
        """
        Return the series to fetch, each a row of `METRICS` with period_s, node_id and dimensions.
        """
        rows = [row for row in METRICS if row["kind"] == self.kind]
        name = "TunnelIpAddress" if self.kind == "vpn" and _ADDRESS.fullmatch(self.id) else rows[0]["dimension"]
        nodes = range(1, self.brokers + 1) if self.kind == "msk" else (None,)
        of_node = {node: {name: self.id} | ({"Broker ID": str(node)} if node else {}) for node in nodes}
        return [
            {**row, "period_s": self.period_s or int(row["period_s"]), "node_id": node, "dimensions": dimensions}
            for node, dimensions in of_node.items()
            for row in rows
        ]


class CloudWatch:
    """
    Fetch the metrics of resources at the end of a session: pass this object to `campaign.run` as `watched=[...]`.

    Data points arrive late, so the request is repeated until the last period has its points, but only for `patience_s`
    (rented hosts cost money meanwhile), and not after the user interrupts. If data points are still missing, a message
    says how many. If CloudWatch refuses the metrics of a resource, the resource's file has the error message instead of
    data.
    """

    def __init__(self, resources: Sequence[Watched], *, patience_s: float = 180.0, aws: Aws | None = None):
        if not resources or not all(isinstance(each, Watched) for each in resources):
            raise refusal("resources", resources, "one or more of labs.aws.cloudwatch.Watched")
        self.resources, self._aws = tuple(resources), aws or Aws()
        self.patience_s = check_number("patience_s", patience_s, 0, 3600)

    def keep(self, folder: Path, stem: str, opened_at_utc: str, leaving: Event | None = None) -> list[RawFile]:
        """
        Fetch all metrics since `opened_at_utc`, and write those of each resource to the file <run
        folder>/cloudwatch/<stem>-<number>.cloudwatch.json.

        Once `leaving` is set (the user interrupted), make at most one further request per resource, without waiting.
        """
        leaving = leaving or Event()
        ends: dict[str, Any] = {"started_at_utc": opened_at_utc, "ended_at_utc": now_utc()}
        start, end = map(datetime.fromisoformat, ends.values())
        deadline = time.monotonic() + self.patience_s
        if not leaving.is_set():
            wait = f"at most {self.patience_s:g} s; Ctrl-C ends the waiting"
            print(f"wanbench: waiting for CloudWatch's metrics, {wait}.", file=sys.stderr)
        fetched = [self._of(each, start, end, deadline, leaving) for each in self.resources]
        for each in fetched:
            missing = sum(series["missing"] for series in each["series"])
            if missing or each["error"]:
                why = f": {each['error']}" if each["error"] else ""
                print(f"wanbench: CloudWatch lacks {missing} data points of {each['name']}{why}", file=sys.stderr)
        contents = [json.dumps(each, indent=1).encode() + b"\n" for each in fetched]
        named = {f"{stem}-{n}.cloudwatch.json": content for n, content in enumerate(contents, 1)}
        return [write_raw(folder, "cloudwatch", name, content, **ends) for name, content in named.items()]

    def _of(self, watched: Watched, start: datetime, end: datetime, deadline: float, leaving: Event) -> dict[str, Any]:
        """Fetch the metrics of a resource, and return the content of its file, which has no id and no dimension."""
        series, points, error = watched.series(), {}, None
        period_s = series[0]["period_s"]
        first = math.floor(start.timestamp() / period_s) * period_s
        # A period that has not ended has no data point yet.
        expected = [first + n * period_s for n in range(int((end.timestamp() - first) // period_s))]
        while expected:
            try:
                points, error = self._points(watched.region, series, expected), None
            except CloudError as refused:
                points, error = {}, str(refused)
                if refused.code not in THROTTLED:
                    break
            if not error and all(expected[-1] in each for each in points.values()):
                break
            if time.monotonic() + POLL_S > deadline or leaving.wait(POLL_S):
                break
        written = []
        for number, each in enumerate(series):
            own = points.get(number, {})
            kept = {key: each[key] for key in ("metric", "statistic", "unit", "period_s", "node_id")}
            kept |= {"missing": len(set(expected) - set(own)), "points": sorted(own.items())}
            written.append(kept)
        return {"name": watched.name, "kind": watched.kind, "error": error, "series": written}

    def _points(self, region: str, series: list[dict[str, Any]], expected: list[int]) -> dict[int, dict[int, float]]:
        """Return the data points of each series, by its number: values by the start of their period (Unix s)."""
        start, end = (datetime.fromtimestamp(each, UTC) for each in (expected[0], expected[-1]))
        points: dict[int, dict[int, float]] = {number: {} for number in range(len(series))}
        for begin in range(0, len(series), MAX_QUERIES):
            queries = [_query(number, series[number]) for number in points if begin <= number < begin + MAX_QUERIES]
            asked = {"MetricDataQueries": queries, "StartTime": start, "ScanBy": "TimestampAscending"}
            asked["EndTime"] = end + timedelta(seconds=series[0]["period_s"])
            for each in self._aws.pages("cloudwatch", region, "get_metric_data", "MetricDataResults", **asked):
                if each.get("StatusCode") in ("InternalError", "Forbidden"):
                    texts = [text.get("Value", "") for text in each.get("Messages", [])]
                    message = without_identities("; ".join([each["StatusCode"], *texts]))
                    code = "InternalServiceFault" if each["StatusCode"] == "InternalError" else each["StatusCode"]
                    raise CloudError(f"cloudwatch get_metric_data in {region}: {message}", code)
                times = (round(at.timestamp()) for at in each["Timestamps"])
                points[int(each["Id"][1:])] |= dict(zip(times, each["Values"], strict=True))
        return {number: {at: value for at, value in of.items() if at in set(expected)} for number, of in points.items()}


def _query(number: int, series: Mapping[str, Any]) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in series["dimensions"].items()]
    metric = {"Namespace": series["namespace"], "MetricName": series["metric"], "Dimensions": dimensions}
    stat = {"Metric": metric, "Period": series["period_s"], "Stat": series["statistic"]}
    # CloudWatch's default label may contain an id.
    return {"Id": f"q{number}", "Label": series["metric"], "MetricStat": stat, "ReturnData": True}
