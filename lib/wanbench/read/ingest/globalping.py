"""
Read ping measurements of Globalping in JSON, which hold the output of each probe's ping, into table echoes.

`from_region` is the probe's network and city, and `to_region` the target. Each result is one ping. A result that is not
ICMP, or failed, is a row of table unread.
"""

import pandas as pd

from wanbench.errors import RawDataError

from . import ping
from .content import Source
from .json_values import Members, read_objects
from .rows import Rows, fitting

WANTED = "ping measurements of Globalping in JSON, as its API gives them"


def read(source: Source) -> dict[str, Rows]:
    """
    Return table "echoes", with regions, and in "unread" the error of each result that cannot be read.

    Raise RawDataError if an object is not a ping measurement, or if no result can be read.
    """
    echoes, unread = [], []
    measurements = read_objects(source, WANTED)
    for measurement in measurements:
        if measurement.text("type") != "ping" or not isinstance(measurement.values.get("results"), list):
            measurement.refuse(", ".join(map(str, measurement.values)), f"{WANTED}, with type ping and results")
        for result in measurement.list("results"):
            try:
                echoes.append(_echoes(measurement, result, len(echoes)))
            except RawDataError as error:
                unread.append(error)
    if not echoes:
        raise unread[0] if unread else RawDataError(measurements[0].path, None, "no results", WANTED)
    found = {"echoes": pd.concat(echoes, ignore_index=True)}
    return found | ({"unread": [error.row() for error in unread]} if unread else {})


def _echoes(measurement: Members, result: Members, number: int) -> pd.DataFrame:
    probe, answer = result.members("probe"), result.members("result")
    printed = answer.text("rawOutput") or ""
    if answer.text("status") != "finished" or not printed.strip():
        answer.refuse(f"{answer.where}: {printed.strip() or answer.text('status')}", "a finished ping's rawOutput")
    try:
        frame = ping.read(printed.encode())["echoes"].to_pandas()
    except RawDataError as error:
        place = f"{answer.where}.rawOutput, line {error.line_number}: {error.found}"
        raise RawDataError(answer.path, None, place, error.expected) from None
    if frame.ping.nunique() > 1:
        answer.refuse(f"{answer.where}: several pings", "the output of one ping")
    place = f"{probe.text('network')}:{probe.text('city')}"
    frame = fitting(answer.path, "echoes", frame.assign(ping=number))
    return frame.assign(from_region=place, to_region=measurement.text("target"))
