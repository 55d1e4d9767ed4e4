"""Tags as the API of EC2 wants them."""

from __future__ import annotations

from wanbench.measure.labs.rented.tags import CAMPAIGN, EXPIRES, OWNER, RUN, Tags, is_expired

__all__ = ["CAMPAIGN", "EXPIRES", "OWNER", "RUN", "Tags", "is_expired", "specifications", "tags_of"]


def specifications(tags: Tags, *kinds: str) -> list[dict]:
    """The parameter TagSpecifications for these kinds of resources."""
    named = tags.values() | {"Name": f"wanbench {tags.campaign}"}
    given = [{"Key": key, "Value": value[:256]} for key, value in named.items()]
    return [{"ResourceType": kind, "Tags": given} for kind in kinds]


def tags_of(description: dict) -> dict[str, str]:
    """The tags of something that EC2 describes."""
    return {tag["Key"]: tag["Value"] for tag in description.get("Tags", [])}
