"""Texts that name a region: every name of the table, codes, zones, both together; vague and unknown ones."""

import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wanbench.errors import ParameterError
from wanbench.read.importers.region_names import KINDS, candidates, region_from, region_names
from wanbench.regions import CLOUDS, catalogue, region

TABLE = region_names()
NAMES = catalogue()["name"].tolist()
CLOUD_WORDS = {"aws": "AWS", "gcp": "Google Cloud", "azure": "Azure", "ibm": "IBM Cloud"}


def cloud_of(name):
    return name.partition(":")[0]


def test_every_region_has_its_display_name_and_the_page_that_says_so():
    display = TABLE[TABLE["kind"] == "display"]
    assert set(display["region"]) == set(NAMES)
    first = display.drop_duplicates("region").set_index("region")["name"]
    assert first.to_dict() == {name: region(name).display_name for name in NAMES}
    assert set(TABLE["kind"]) == set(KINDS) and not TABLE.duplicated(["region", "name"]).any()
    hosts = {
        "aws": r"https://docs\.(aws\.amazon\.com|amazonaws\.cn)/",
        "gcp": r"https://cloud\.google\.com/",
        "azure": r"https://learn\.microsoft\.com/",
        "ibm": r"https://(cloud\.ibm\.com|github\.com/(IBM|ibm-cloud-docs))/",
    }
    for row in TABLE.itertuples():
        assert re.match(hosts[cloud_of(row.region)], row.source), row


@pytest.mark.parametrize("name", NAMES)
def test_display_name_and_code_come_back_to_their_region(name):
    one = region(name)
    for text in (one.name, one.code, one.code.upper(), one.display_name, one.display_name.lower()):
        assert region_from(text, one.cloud) == name, text
        assert name in candidates(text), text
    word = CLOUD_WORDS[one.cloud]
    for text in (
        f"{word} {one.code}",
        f"{word} {one.display_name}",
        f"{word} - {one.display_name}",
        f"{one.display_name} ({one.code})",
        f"{one.code} ({one.display_name})",
        f"{one.display_name}\n{one.code}",
        f"{one.code} | {one.display_name}",
    ):
        assert region_from(text) == name, text


def test_every_name_of_the_table_means_its_region_at_its_cloud():
    for row in TABLE.itertuples():
        of = candidates(row.name, cloud_of(row.region))
        if row.kind in ("display", "old", "short"):
            assert of == [row.region], row
        else:
            assert of and (row.region in of or row.kind == "place"), row
        assert region_from(f"{row.name} ({region(row.region).code})", cloud_of(row.region)) == row.region


@pytest.mark.parametrize(
    "text, expected",
    [
        ("us-east-1", "aws:us-east-1"),
        ("US_EAST_1", "aws:us-east-1"),
        ("us east 1", "aws:us-east-1"),
        ("us-east1", "gcp:us-east1"),
        ("us-south1", "gcp:us-south1"),
        ("us-south-1", "ibm:us-south"),
        ("us-east-1a", "aws:us-east-1"),
        ("us-east1-b", "gcp:us-east1"),
        ("jp-tok-3", "ibm:jp-tok"),
        ("us-south-dal10-a", "ibm:us-south"),
        ("eastus", "azure:eastus"),
        ("East US", "azure:eastus"),
        ("EAST-US-2", "azure:eastus2"),
        ("eastus2", "azure:eastus2"),
        ("(US) East US 2", "azure:eastus2"),
        ("(Europe) West Europe", "azure:westeurope"),
        ("UK South", "azure:uksouth"),
        ("Central US", "azure:centralus"),
        ("canadacentral", "azure:canadacentral"),
        ("South East Asia", "azure:southeastasia"),
        ("US East (N. Virginia)", "aws:us-east-1"),
        ("US East (N. Virginia) us-east-1", "aws:us-east-1"),
        ("us-east-1 - N. Virginia", "aws:us-east-1"),
        ("N. Virginia", "aws:us-east-1"),
        ("Europe (Frankfurt)", "aws:eu-central-1"),
        ("EU (Ireland)", "aws:eu-west-1"),
        ("Asia Pacific (Osaka-Local)", "aws:ap-northeast-3"),
        ("AWS GovCloud (US)", "aws:us-gov-west-1"),
        ("South America (São Paulo)", "aws:sa-east-1"),
        ("Iowa (us-central1)", "gcp:us-central1"),
        ("us-central1 (Iowa)", "gcp:us-central1"),
        ("us-central1 (Council Bluffs, Iowa)", "gcp:us-central1"),
        ("South Carolina", "gcp:us-east1"),
        ("Montréal, Québec", "gcp:northamerica-northeast1"),
        ("Dallas (us-south)", "ibm:us-south"),
        ("Mumbai (in-mum)", "ibm:in-mum"),
        ("in-mum-2", "ibm:in-mum"),
        ("US South (Dallas)", "ibm:us-south"),
        ("Dallas 10", "ibm:dal10"),
        ("DAL10", "ibm:dal10"),
        ("Dallas 10 (dal10)", "ibm:dal10"),
        ("Dallas (DAL10)", "ibm:dal10"),
        ("Frankfurt 02", "ibm:fra02"),
        ("Amsterdam 3", "ibm:ams03"),
        ("London 2 (eu-gb-2)", "ibm:eu-gb"),
        ("Washington, D.C.", "ibm:us-east"),
        ("AWS us-east-1", "aws:us-east-1"),
        ("aws.eu-west-1", "aws:eu-west-1"),
        ("AWS | us-east-1", "aws:us-east-1"),
        ("gcp:us-east1", "gcp:us-east1"),
        ("GCP - us-central1 (Iowa)", "gcp:us-central1"),
        ("azure:westeurope", "azure:westeurope"),
        ("Microsoft Azure / West Europe", "azure:westeurope"),
        ("IBM Cloud Tokyo", "ibm:jp-tok"),
        ("Amazon Tokyo", "aws:ap-northeast-1"),
        ("  East\u00a0US  ", "azure:eastus"),
    ],
)
def test_region_from(text, expected):
    assert region_from(text) == expected


@pytest.mark.parametrize(
    "text, cloud, expected",
    [
        ("us-east-1", "ibm", "ibm:us-east"),
        ("us-east", "ibm", "ibm:us-east"),
        ("useast1", "gcp", "gcp:us-east1"),
        ("useast1", "aws", "aws:us-east-1"),
        ("Canada (Central)", "aws", "aws:ca-central-1"),
        ("Canada Central", "azure", "azure:canadacentral"),
        ("Tokyo", "aws", "aws:ap-northeast-1"),
        ("Tokyo", "gcp", "gcp:asia-northeast1"),
        ("Tokyo", "azure", "azure:japaneast"),
        ("Tokyo", "ibm", "ibm:jp-tok"),
        ("Mumbai", "ibm", "ibm:in-mum"),
        ("Tokyo 02", "ibm", "ibm:tok02"),
        ("Dallas", "ibm", "ibm:us-south"),
        ("Dallas 2", "ibm", "ibm:us-south"),
        ("Tokyo 2", "ibm", "ibm:jp-tok"),
        ("Dallas 9", "ibm", "ibm:dal09"),
        ("Seoul", "ibm", "ibm:seo01"),
        ("Oregon", "gcp", "gcp:us-west1"),
    ],
)
def test_the_cloud_decides(text, cloud, expected):
    assert region_from(text, cloud) == expected


@pytest.mark.parametrize(
    "text, cloud, several",
    [
        ("us-east", None, ["aws:us-east-1", "aws:us-east-2", "ibm:us-east"]),
        ("US East", "aws", ["aws:us-east-1", "aws:us-east-2"]),
        ("useast1", None, ["aws:us-east-1", "gcp:us-east1"]),
        ("Canada (Central)", None, ["aws:ca-central-1", "azure:canadacentral"]),
        ("Canada Central", None, ["aws:ca-central-1", "azure:canadacentral"]),
        ("Tokyo", None, ["aws:ap-northeast-1", "azure:japaneast", "gcp:asia-northeast1", "ibm:jp-tok"]),
        ("Hong Kong", None, ["aws:ap-east-1", "azure:eastasia", "gcp:asia-east2", "ibm:hkg02"]),
        ("Ireland", None, ["aws:eu-west-1", "azure:northeurope"]),
        ("Virginia", "azure", ["azure:eastus", "azure:eastus2"]),
        ("Amsterdam", "ibm", ["ibm:ams01", "ibm:ams03"]),
    ],
)
def test_vague_names_fail_naming_all_that_they_could_be(text, cloud, several):
    assert candidates(text, cloud) == several
    with pytest.raises(ParameterError, match=re.escape(" or ".join(several))) as caught:
        region_from(text, cloud)
    one_each = len({cloud_of(name) for name in several}) == len(several)
    assert ("name the cloud" in str(caught.value)) == one_each


@pytest.mark.parametrize(
    "text, cloud, message",
    [
        ("us-east-9", None, "similar: .*us-east"),
        ("eastuss", None, "azure:eastus"),
        ("Frankfrt", "ibm", "ibm:eu-de"),
        ("us-west-2-lax-1a", None, "which is unknown"),
        ("AWS East US", None, "which is unknown"),
        ("azure:us-east-1", None, "which is unknown"),
        ("aws:us-east-1", "gcp", "region is 'aws:us-east-1', which is unknown; (similar|allowed) of gcp"),
        ("East US", "aws", "of aws"),
        ("Iowa (us-east1)", None, "which is unknown"),
        ("London Paris", "gcp", "which is unknown"),
        ("Central", None, "which is unknown"),
        ("", None, "allowed: codes and names"),
        ("---", None, "allowed: codes and names"),
        ("x" * 10_000, None, "region is 'x+\\.\\.\\.'"),
        ("us-east-1 " * 100, None, "which is unknown"),
        (None, None, "allowed: text that names a region"),
        (7, None, "allowed: text that names a region"),
        ("us-east-1", "oci", "cloud is 'oci'; allowed: 'aws', 'gcp', 'azure', 'ibm'"),
    ],
)
def test_unknown_names_fail(text, cloud, message):
    with pytest.raises(ParameterError, match=message):
        region_from(text, cloud)


def test_near_names_stay_within_the_cloud():
    with pytest.raises(ParameterError) as caught:
        region_from("eastuss", "azure")
    assert set(re.findall(r"\b(aws|gcp|azure|ibm):", str(caught.value))) == {"azure"}


def test_the_table_of_names_is_complete():
    listed = region_names()
    assert list(listed) == ["region", "name", "kind", "source"]
    assert listed.region.isin(catalogue().name).all() and listed.kind.isin(KINDS).all()
    assert (listed[["name", "source"]] != "").all(axis=None)


def shared(*parts):
    path = Path(__file__).parents[3].joinpath("shared", "data", *parts)
    if not path.is_file():
        pytest.skip(f"{path.name} is not next to this repository")
    return path


def test_regions_as_surveys_write_them():
    survey = pd.read_csv(shared("doit", "locations.csv"))
    for cloud, code in zip(survey["cloud"], survey["region"], strict=True):
        name = f"{cloud.lower()}:{code}"
        assert region_from(f"{cloud} {code}") == region_from(code, cloud.lower()) == name
        assert region_from(code) == name
    grid = pd.read_csv(shared("grids", "skyplane_latency_2022-04-16.csv"))
    for name in set(grid["src_region"]) | set(grid["dst_region"]):
        assert region_from(name) == re.sub(r"^(gcp:.*\d)-[a-z]$", r"\1", name)


SPELLINGS = st.sampled_from(["", " ", "-", "_", "  ", ", ", " (", ") "])


@pytest.mark.fuzz
@given(st.sampled_from(TABLE.to_dict("records")), st.data())
def test_spelling_does_not_matter_at_the_own_cloud(row, data):
    """Words put together otherwise, in any case, never mean another region than the name itself can."""
    parts = re.findall(r"\w+", row["name"])
    text = "".join(
        data.draw(st.sampled_from([word, word.upper(), word.lower()])) + data.draw(SPELLINGS) for word in parts
    )
    cloud = cloud_of(row["region"])
    assert set(candidates(text, cloud)) <= set(candidates(row["name"], cloud)) | set(candidates("".join(parts), cloud))
    # "Canada (Central)" written in one word is the code of another cloud's region, and is refused as such.
    is_foreign_code = text.lower() in {name.partition(":")[2] for name in catalogue().name} - {row["region"]}
    if row["kind"] == "display" and not is_foreign_code:
        assert row["region"] in candidates(text, cloud) or cloud == "gcp"


@pytest.mark.fuzz
@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(
            st.sampled_from(
                [*TABLE["name"].tolist(), *NAMES, "AWS", "(", ")", " ", "-", "1", "a", "\u202e", "é", "|", "IBM "]
            ),
            max_size=6,
        ).map("".join),
    ),
    st.sampled_from([None, *CLOUDS]),
)
def test_any_text_gives_a_region_or_an_error(text, cloud):
    found = candidates(text, cloud)
    assert set(found) <= set(NAMES) and found == sorted(set(found))
    if cloud:
        assert {cloud_of(name) for name in found} <= {cloud}
    if len(found) == 1:
        assert region_from(text, cloud) == found[0]
    else:
        with pytest.raises(ParameterError):
            region_from(text, cloud)
