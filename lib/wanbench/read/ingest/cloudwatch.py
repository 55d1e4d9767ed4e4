"""
Read files that `wanbench.measure.labs.aws.cloudwatch` saved into table metrics.

- Metrics keep CloudWatch's names. The time of a value is the end of its period.
- Each series also has a row `missing_data_points`: the number of periods without a value in the whole session.
- Each resource has a file. If CloudWatch denied access to the resource's metrics, the error of the file is CloudWatch's
message.
"""

from datetime import UTC, datetime
from pathlib import Path

from wanbench.errors import RawDataError

from .json_values import Members, T, read_json
from .rows import Rows, fitting

MISSING = "missing_data_points"
EXPECTED = 'a JSON object with "name" and "series", as wanbench.measure.labs.aws.cloudwatch writes it'
LATEST_S = 2**33
"""Latest possible time, in the year 2242; larger numbers are not seconds."""


def read(path: str | Path) -> dict[str, Rows]:
    """
    Read the saved file of one resource into rows of table "metrics".

    Raise RawDataError if a member is missing or invalid (the error names it), or if CloudWatch refused the data.
    """
    path = Path(path)
    document = Members(path, None, read_json(path, dict, EXPECTED))
    return {"metrics": fitting(path, "metrics", list(_of_resource(document)))}


def _of_resource(resource: Members):
    name, kind = (_known(resource, resource.text(key), key) for key in ("name", "kind"))
    if error := resource.text("error"):
        raise RawDataError(resource.path, None, f"no metrics of {name}: {error}", "data of CloudWatch")
    _known(resource, resource.values.get("series"), "series")
    for series in resource.list("series"):
        metric = _known(series, series.text("metric"), "metric")
        period_s = _known(series, series.number("period_s", unknown=0, most=86_400), "period_s")
        row = {"source": "cloudwatch", "host": name if kind == "instance" else None, "cumulative": False}
        row |= {"node_id": series.count("node_id"), "subject": name}
        what = {"metric": metric, "statistic": series.text("statistic"), "unit": series.text("unit") or ""}
        what["interval_s"] = period_s
        for at_s, value in _points(series):
            yield row | what | {"at_utc": datetime.fromtimestamp(at_s + period_s, UTC), "value": value}
        missing = _known(series, series.count("missing"), "missing")
        yield row | {"subject": f"{name} {metric}", "metric": MISSING, "value": float(missing), "unit": ""}


def _points(series: Members):
    points = series.values.get("points")
    if not isinstance(points, list):
        series.refuse(f"{series.where}.points = {str(points)[:80]}", "a list of pairs")
    before = -1.0
    for point in points:
        fits = isinstance(point, list) and [type(each) in (int, float) for each in point] == [True, True]
        if not fits or not before < point[0] < LATEST_S or not abs(point[1]) < float("inf"):
            series.refuse(f"{series.where}: {str(point)[:80]}", "a time in Unix s after the previous one, and a number")
        before = point[0]
        yield point


def _known(members: Members, value: T | None, name: str) -> T:
    if value is None:
        members.refuse(f"{members.where or 'a resource'} without {name}", EXPECTED)
    return value
