"""Flags of data that others have published, where the files lie next to the repository."""

import pytest

from wanbench.folders import root
from wanbench.read import importers, plausibility

SHARED = root().parent / "shared" / "data"
DOIT, GRIDS = SHARED / "doit", SHARED / "grids"


@pytest.mark.skipif(not DOIT.is_dir(), reason="no published data beside the repository")
def test_two_places_of_the_survey_are_wrong():
    found = importers.read_survey(DOIT / "results_202202.csv", DOIT / "locations.csv")["flags"]
    regions = found[found.scope == "region"].set_index("region")
    assert set(regions.index) == {"gcp:northamerica-northeast1", "gcp:southamerica-east1"}
    assert "Montreal" in regions.found["gcp:northamerica-northeast1"]
    assert "the longitude is wrong; São Paulo" in regions.cause["gcp:southamerica-east1"]
    assert set(found.rule) == {"coordinates", "light"}


@pytest.mark.skipif(not DOIT.is_dir(), reason="no published data beside the repository")
@pytest.mark.parametrize("bitrate", ["bytes/s", "bit/s"])
def test_the_surveys_rates_are_bytes_transferred(bitrate):
    found = importers.read_survey(DOIT / "results_202202.csv", bitrate=bitrate)["flags"]
    block = found[found.rule == "block"]
    assert block.cause.str.startswith("bytes transferred, not a rate: whole blocks of iperf's 128 KiB").any()
    above = found[(found.rule == "instance") & (found.scope == "row")]
    assert (len(above) > 500) == (bitrate == "bytes/s")
    assert above.cause.str.startswith("bytes transferred, not a rate").all()


@pytest.mark.skipif(not GRIDS.is_dir(), reason="no published data beside the repository")
def test_the_grids_hosts_of_google_time_echoes_too_short():
    found = importers.read_skyplane(GRIDS / "skyplane_latency_2022-04-16.csv")["flags"]
    rows = found[(found.scope == "row") & (found.rule == "light")]
    assert len(rows) == 243 and rows.from_region.str.startswith("gcp:").all()
    assert rows.cause.str.contains("echoes of this ping were timed too short").all()
    wide = found[found.scope == "column"]
    assert len(wide) == 1 and "hosts of Google Cloud" in wide.cause.iloc[0]
    more = found[(found.scope == "row") & (found.rule == "asymmetry")]
    assert more.from_region.str.startswith("gcp:").all() and set(more.cause) == set(rows.cause)
    assert "243 of 4,230 rows that start in Google Cloud" in str(plausibility.report(found))
