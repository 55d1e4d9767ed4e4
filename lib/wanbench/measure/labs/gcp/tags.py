"""Tags as Google Cloud can carry them: in descriptions, as networks, subnets and rules have no labels."""

from __future__ import annotations

import json

from wanbench.measure.labs.rented.tags import RUN, Tags

LABEL = "wanbench-run"
"""Label of instances and disks, with the run's id, for bills and for people."""


def name(run: str, *parts: str) -> str:
    """
    The name of something of a run.

    >>> name("0123456789abcdef", "operator")
    'wanbench-0123456789abcdef-operator'
    """
    return "-".join(("wanbench", run, *parts))


def description(tags: Tags) -> str:
    """The description of every resource that is made."""
    return json.dumps(tags.values())


def tags_of(described) -> dict[str, str]:
    """The tags of something that the API describes; empty if no run made it."""
    try:
        told = json.loads(described.description)
    except ValueError:
        return {}
    return told if isinstance(told, dict) and RUN in told else {}
