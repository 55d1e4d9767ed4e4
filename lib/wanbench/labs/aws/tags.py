"""Tags of everything that is made: set by the call that makes it, so that nothing is ever without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

CAMPAIGN, OWNER, EXPIRES, RUN = "wanbench:campaign", "wanbench:owner", "wanbench:expires", "wanbench:run"


@dataclass(frozen=True)
class Tags:
    """What the resources of one run carry; `expires_at` is when its hosts shut themselves down."""

    run: str
    campaign: str
    owner: str
    expires_at: datetime

    def items(self) -> list[dict[str, str]]:
        """As the API wants them."""
        expires = self.expires_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        values = {RUN: self.run, CAMPAIGN: self.campaign, OWNER: self.owner, EXPIRES: expires}
        named = values | {"Name": f"wanbench {self.campaign}"}
        return [{"Key": key, "Value": value[:256]} for key, value in named.items()]

    def of(self, *kinds: str) -> list[dict]:
        """The parameter TagSpecifications for these kinds of resources."""
        return [{"ResourceType": kind, "Tags": self.items()} for kind in kinds]


def is_expired(tags: Mapping[str, str], now: datetime | None = None) -> bool:
    """Whether the expiry tag lies in the past; one that is missing or unreadable does."""
    try:
        expires = datetime.strptime(tags[EXPIRES], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except (KeyError, ValueError):
        return True
    return expires <= (now or datetime.now(UTC))
