"""
Results of the intercloud-throughput tool (doitintl, 2022), in every form in which it has stored them.

A row is one test: `iperf -c HOST -y C` (iperf 2: one stream, ten seconds), then `ping -c 5`. The forms: JSON lines
with `from` and `to` as objects; CSV with `datetime` or `timestamp`, with or without `distance` (not kept: it follows
from coordinates) and `gcp_vm`, `aws_vm` (kept as the setting); numbers as text, blanks, counts shortened to "143Mi";
columns that occur twice because files were pasted side by side.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from wanbench import tables
from wanbench.checks import check_choice
from wanbench.read.ingest.content import plain_name

from .assemble import finished, measured, table_of
from .sheet import NUMBER, Sheet, read_csv, read_jsonl

BITRATE = ("bytes in 10 s", "bytes/s", "bit/s")
DURATION_S = 10.0  # iperf's default, which the tool's script does not change.
ECHOES = 5  # The script runs `ping -c 5`.
WORD = r"[A-Za-z][A-Za-z0-9]*"
CODE = r"[a-z0-9]+(?:-[a-z0-9]+)*"
ENDS = ("from_cloud", "from_region", "to_cloud", "to_region")
IEC = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
MAX_BITRATE = 2.0**53  # Above it a float does not hold every whole number.
KM_PER_DEGREE = 111.2
HALF_UNIT_DEG = 0.005  # locations.csv rounds to two decimals.
ROUNDED_KM = 1.0  # Upper limit of the shift by rounding: half a unit of the second decimal, both north and east.


def read_survey(
    results, locations=None, *, bitrate: str = "bytes in 10 s", about=None, locations_about=None
) -> dict[str, pd.DataFrame]:
    """
    Tables of a results file of the tool: tests, pings, transfers, sources, unread, flags; regions with `locations`.

    Raises ParameterError if `bitrate` is not one of the three, RawDataError if no row can be read or columns are
    missing; single rows that cannot be read are rows of unread.

    Parameters
    ----------
    results : path
        results.csv or results.jsonl.
    locations : path, optional
        The locations.csv next to it. Its coordinates become table regions, so that the study can be analysed with them
        (`summarise_pairs(tables, rtt="mean", regions=tables["regions"])`) and with the catalogue's.
    bitrate : str
        How to read the column bitrate_Bps. "bytes in 10 s" is what the tool's script writes: the second last field of
        iperf 2's report is the bytes transferred, not a rate, and the test lasts ten seconds. "bytes/s" is what the
        column's name says, "bit/s" how its authors' charts read it.
    about, locations_about : mapping, optional
        title, address, version, licence of the two files; known for those in `importers.original_files()`.

    Notes
    -----
    The bytes are what the client had written when its time was up; the last socket buffer may not have arrived. RTTs
    are ping's averages; minimum, median and lost echoes are not known. A test without RTT and bitrate has failed. The
    plausibility rules take the coordinates of `locations` as exact to their last decimal (1 km), even where the sources
    that they average differ.
    """
    check_choice("bitrate", bitrate, BITRATE)
    sheet = _opened(results, about)
    sheet.need(("timestamp", "datetime"), *ENDS, "bitrate_Bps", "avgrtt")
    from_region, to_region = (_regions(sheet, end) for end in ("from", "to"))
    started = sheet.time(sheet.first("timestamp", "datetime"))
    rtt = sheet.number("avgrtt")
    amount = _amount(sheet)
    test = {"run_id": _run_ids(sheet), "from_region": from_region, "to_region": to_region}
    replied, carried = rtt.notna().to_numpy(), amount.notna().to_numpy()
    outcome = {"setting": _settings(sheet), "started_at_utc": started}
    outcome |= {"done": replied | carried, "reason": "neither RTT nor bitrate"}
    pings = {"n_sent": ECHOES, "mean_rtt_ms": rtt}
    kinds = {"pings": (pings, replied), "transfers": (_rates(amount, bitrate), carried)}
    survey, exact = measured(sheet, test, outcome, kinds), None
    if locations is not None:
        places = read_locations(locations, about=locations_about)
        survey["regions"] = places["regions"]
        exact = taken_as_exact(places["regions"])
        for name in ("sources", "unread"):
            rows = [*survey[name].to_dict("records"), *places[name].to_dict("records")]
            survey[name] = tables.from_rows(name, rows)
    return finished(survey, exact)


def taken_as_exact(regions: pd.DataFrame) -> pd.DataFrame:
    """
    The coordinates of locations.csv as the plausibility rules take them: exact to their last decimal.

    Their stated precision is the spread of several sources. A wrong source widens it, and would hide its own error.
    """
    return regions.assign(precision_km=ROUNDED_KM)


def _opened(path, about) -> Sheet:
    if plain_name(path).lower().endswith((".jsonl", ".ndjson", ".json")):
        return read_jsonl(path, about=about)
    return read_csv(path, comment="#", about=about)


def _regions(sheet, end):
    clouds = sheet.matching(f"{end}_cloud", WORD, "a cloud, such as AWS or GCP").str.lower()
    return clouds + ":" + sheet.matching(f"{end}_region", CODE, "a region's code, such as us-east-1")


def _run_ids(sheet):
    texts = sheet.text("run_id")
    return texts.where(texts != "", Path(sheet.path).name)


def _amount(sheet):
    """bitrate_Bps as a number; the first scripts shortened it to "143Mi" (powers of 1024)."""
    texts = sheet.text("bitrate_Bps")
    unit = texts.str[-2:]
    short = unit.isin(list(IEC)) & texts.str[:-2].str.fullmatch(NUMBER)
    factor = unit.map(IEC).where(short, 1.0).astype("float64")
    if short.any():
        sheet.replace("bitrate_Bps", texts.where(~short, texts.str[:-2]))
    with np.errstate(over="ignore"):
        amount = sheet.number("bitrate_Bps") * factor
    sheet.refuse(amount > MAX_BITRATE, texts, f"bitrate_Bps: at most {MAX_BITRATE:.0f}")
    return amount.where(amount <= MAX_BITRATE)


def _rates(amount, bitrate):
    common = {"direction": "forward", "protocol": "TCP", "streams": 1}
    if bitrate == "bytes in 10 s":
        rate = amount * 8 / DURATION_S
        common |= {"duration_s": DURATION_S, "bytes": amount.round()}
    else:
        rate = amount * 8 if bitrate == "bytes/s" else amount
    return common | {"throughput_bps": rate, "sent_throughput_bps": rate}


def _settings(sheet):
    """The machines of both ends, from `<cloud>_vm`; null where the file names neither."""
    ends = []
    for end in ("from", "to"):
        clouds = sheet.text(f"{end}_cloud").str.lower()
        machines = pd.Series("", index=clouds.index, dtype="str")
        for cloud in clouds.unique():
            machines = machines.where(clouds != cloud, sheet.text(f"{cloud}_vm"))
        ends.append(machines)
    return setting(*ends)


def setting(start: pd.Series, end: pd.Series) -> pd.Series:
    """ "A to B", with "unknown" for one empty end; null where both are empty."""
    stated = (start != "") | (end != "")
    return (start.where(start != "", "unknown") + " to " + end.where(end != "", "unknown")).where(stated)


def read_locations(path, *, about=None) -> dict[str, pd.DataFrame]:
    """
    Tables regions, sources and unread of the tool's locations.csv.

    The precision of a coordinate is the spread of the sources it averages (columns lat_stdev, long_stdev) plus half a
    unit of the second decimal; null where it has one source only, or no spread. The earliest form has the columns lat
    and long only. Lines that begin with # are comments.
    """
    sheet = read_csv(path, comment="#", about=about)
    sheet.need("cloud", "region", ("latitude", "lat"), ("longitude", "long"))
    clouds = sheet.matching("cloud", WORD, "a cloud, such as AWS or GCP").str.lower()
    codes = sheet.matching("region", CODE, "a region's code, such as us-east-1")
    names = clouds + ":" + codes
    latitude = sheet.number(sheet.first("latitude", "lat"), minimum=-90, maximum=90)
    longitude = sheet.number(sheet.first("longitude", "long"), minimum=-180, maximum=180)
    sheet.refuse(latitude.isna() | longitude.isna(), names, "both coordinates")
    sheet.refuse(names.duplicated(), names, "a region not given before")
    source = sheet.text("source")
    columns = {"name": names, "cloud": clouds, "code": codes, "latitude_deg": latitude, "longitude_deg": longitude}
    columns |= {"precision_km": _precision_km(sheet, latitude)}
    columns["source"] = (Path(sheet.path).name + ": " + source).where(source != "", Path(sheet.path).name)
    rows = {"sources": [sheet.source], "unread": sheet.unread()}
    made = {name: tables.from_rows(name, values) for name, values in rows.items()}
    return {"regions": table_of("regions", columns, sheet.good)} | made


def _precision_km(sheet, latitude):
    if not {"lat_stdev", "long_stdev", "count"} <= set(sheet.names):
        return pd.Series(np.nan, index=latitude.index)
    north = (sheet.number("lat_stdev") + HALF_UNIT_DEG) * KM_PER_DEGREE
    east = (sheet.number("long_stdev") + HALF_UNIT_DEG) * KM_PER_DEGREE * np.cos(np.radians(latitude))
    return np.hypot(north, east).where(sheet.number("count") > 1)
