"""
Read results of the intercloud-throughput tool (doitintl, 2022) in all formats of its files.

Each row is one test: `iperf -c HOST -y C` (iperf 2: one stream, ten seconds), then `ping -c 5`. Files are JSON lines
with objects `from` and `to`, or CSV with `datetime` or `timestamp`, and with or without `distance` (ignored, because it
follows from coordinates), `gcp_vm` and `aws_vm` (which become the setting). Numbers can be texts, missing, or shortened
to "143Mi", and columns can occur twice because files were pasted side by side.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from wanbench import tables
from wanbench.checks import check_choice
from wanbench.read.ingest.content import plain_name

from .assemble import finished, measured, origins, table_of
from .originals import About
from .sheet import NUMBER, Sheet, read_csv, read_jsonl

BITRATE = ("bytes in 10 s", "bytes/s", "bit/s")
DURATION_S = 10.0  # The default of iperf, which the tool's script uses.
ECHOES = 5  # The script runs `ping -c 5`.
WORD = r"[A-Za-z][A-Za-z0-9]*"
CODE = r"[a-z0-9]+(?:-[a-z0-9]+)*"
ENDS = ("from_cloud", "from_region", "to_cloud", "to_region")
IEC = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
MAX_BITRATE = 2.0**53  # A float represents every integer up to this one.
KM_PER_DEGREE = 111.2
HALF_UNIT_DEG = 0.005  # locations.csv rounds to two decimals.
ROUNDED_KM = 1.0  # Above the largest shift by rounding to two decimals, north and east.


def read_survey(
    results: str | Path,
    locations: str | Path | None = None,
    *,
    bitrate: str = "bytes in 10 s",
    about: About = None,
    locations_about: About = None,
) -> dict[str, pd.DataFrame]:
    """
    Read results of the tool into tables tests, pings, transfers, sources, unread and flags.

    With `locations`, also return table regions. Raise ParameterError if `bitrate` is none of the values below, and
    RawDataError if columns are missing or no row can be read. Single rows that cannot be read are listed in table
    unread.

    Parameters
    ----------
    results : path
        results.csv or results.jsonl.
    locations : path, optional
        The file locations.csv of the study. Its coordinates become table regions, so that the study can be analysed
        with them (`summarise_pairs(tables, rtt="mean", regions=tables["regions"])`) or with those of the catalogue.
    bitrate : "bytes in 10 s", "bytes/s" or "bit/s"
        The unit of the column bitrate_Bps. The tool's script writes bytes in 10 s: the second last field of iperf 2's
        report is the number of bytes transferred, not a rate, and the test lasts ten seconds. The column's name means
        bytes/s, and the charts of its authors use bit/s.
    about, locations_about : mapping, optional
        title, address, version and licence of the two files; they are known for the files in `original_files.csv`.

    Notes
    -----
    The bytes are those that the client had written at the end of the test; the last socket buffer may not have
    arrived. RTTs are ping's averages; minima, medians and losses are not known. A test with neither RTT nor bitrate has
    failed. The plausibility rules assume that the coordinates of `locations` are precise to 1 km, even if the averaged
    sources differ by more.
    """
    check_choice("bitrate", bitrate, BITRATE)
    is_json = plain_name(results).lower().endswith((".jsonl", ".ndjson", ".json"))
    sheet = read_jsonl(results, about=about) if is_json else read_csv(results, comment="#", about=about)
    sheet.need(("timestamp", "datetime"), *ENDS, "bitrate_Bps", "avgrtt")
    from_region, to_region = (_regions(sheet, end) for end in ("from", "to"))
    started = sheet.time(sheet.first("timestamp", "datetime"))
    rtt = sheet.number("avgrtt")
    amount = _amount(sheet)
    runs = sheet.text("run_id")
    test = {"run_id": runs.where(runs != "", Path(sheet.path).name), "from_region": from_region, "to_region": to_region}
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
    Set the precision of coordinates from locations.csv to 1 km, for the plausibility rules.

    The file's own precision is the spread of several sources. With it, the rules would miss a wrong source, because a
    wrong source increases the spread.
    """
    return regions.assign(precision_km=ROUNDED_KM)


def _regions(sheet: Sheet, end: str) -> pd.Series:
    clouds = sheet.matching(f"{end}_cloud", WORD, "a cloud, such as AWS or GCP").str.lower()
    return clouds + ":" + sheet.matching(f"{end}_region", CODE, "a region's code, such as us-east-1")


def _amount(sheet: Sheet) -> pd.Series:
    """Return bitrate_Bps as numbers; early scripts shortened them to "143Mi" (powers of 1024)."""
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


def _rates(amount: pd.Series, bitrate: str):
    common = {"direction": "forward", "protocol": "TCP", "streams": 1}
    if bitrate == "bytes in 10 s":
        rate = amount * 8 / DURATION_S
        common |= {"duration_s": DURATION_S, "bytes": amount.round()}
    else:
        rate = amount * 8 if bitrate == "bytes/s" else amount
    return common | {"throughput_bps": rate, "sent_throughput_bps": rate}


def _settings(sheet: Sheet) -> pd.Series:
    """Return the machines of both ends, from columns `<cloud>_vm`, as the setting; null if neither is known."""
    ends = []
    for end in ("from", "to"):
        clouds = sheet.text(f"{end}_cloud").str.lower()
        machines = pd.Series("", index=clouds.index, dtype="str")
        for cloud in clouds.unique():
            machines = machines.where(clouds != cloud, sheet.text(f"{cloud}_vm"))
        ends.append(machines)
    return setting(*ends)


def setting(start: pd.Series, end: pd.Series) -> pd.Series:
    """Return the setting "<start> to <end>" of each row, with "unknown" for an empty end; null if both are empty."""
    stated = (start != "") | (end != "")
    return (start.where(start != "", "unknown") + " to " + end.where(end != "", "unknown")).where(stated)


def read_locations(path: str | Path, *, about: About = None) -> dict[str, pd.DataFrame]:
    """
    Read the tool's locations.csv into tables regions, sources and unread.

    Coordinates are averages of several sources. `precision_km` is the spread of the sources (columns lat_stdev and
    long_stdev) plus half a unit of the second decimal. The precision is null for a single source, and in early files,
    which lack these columns. Lines that begin with # are comments.
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
    return origins(sheet) | {"regions": table_of("regions", columns, sheet.good)}


def _precision_km(sheet: Sheet, latitude: pd.Series) -> pd.Series:
    if not {"lat_stdev", "long_stdev", "count"} <= set(sheet.names):
        return pd.Series(np.nan, index=latitude.index)
    north = (sheet.number("lat_stdev") + HALF_UNIT_DEG) * KM_PER_DEGREE
    east = (sheet.number("long_stdev") + HALF_UNIT_DEG) * KM_PER_DEGREE * np.cos(np.radians(latitude))
    return np.hypot(north, east).where(sheet.number("count") > 1)
