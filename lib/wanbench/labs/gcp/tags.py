"""Tags as labels where Google Cloud has labels, and in descriptions where it has none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from ..rented.tags import EXPIRES, RUN, Tags

LABEL_LENGTH = 63
_TAG_TIME, _LABEL_TIME = "%Y-%m-%dT%H:%M:%SZ", "%Y%m%dt%H%M%Sz"


def name(run: str, *parts: str) -> str:
    """
    The name of something of a run.

    >>> name("0123456789abcdef", "operator")
    'wanbench-0123456789abcdef-operator'
    """
    return "-".join(("wanbench", run, *parts))


def label(tag: str) -> str:
    """
    The key of a tag's label.

    >>> label("wanbench:run")
    'wanbench-run'
    """
    return tag.replace(":", "-")


def labels(tags: Tags) -> dict[str, str]:
    """Of instances and disks. Labels have lower case, digits, - and _ only: other characters become -."""
    values = tags.values()
    values[EXPIRES] = datetime.strptime(values[EXPIRES], _TAG_TIME).strftime(_LABEL_TIME)
    return {
        label(tag): re.sub(r"[^a-z0-9_-]", "-", value.lower())[:LABEL_LENGTH] for tag, value in values.items()
    }


def description(tags: Tags) -> str:
    """Of networks, subnets and firewall rules, which have no labels."""
    return json.dumps(tags.values())


def tags_of(described) -> dict[str, str]:
    """The tags of an instance, disk, network, subnet or rule; empty if a run did not make it."""
    if "labels" in type(described).meta.fields:
        told = _of_labels(described.labels)
    else:
        try:
            told = json.loads(described.description)
        except ValueError:
            told = {}
    return told if isinstance(told, dict) and RUN in told else {}


def _of_labels(given: Mapping[str, str]) -> dict[str, str]:
    told = {key.replace("-", ":", 1): value for key, value in given.items() if key.startswith("wanbench-")}
    with suppress(KeyError, ValueError):  # unreadable counts as expired
        told[EXPIRES] = datetime.strptime(told[EXPIRES], _LABEL_TIME).strftime(_TAG_TIME)
    return told
