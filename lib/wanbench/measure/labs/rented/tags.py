"""Tags of everything that is made: set by the call that makes it, so that nothing is ever without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

CAMPAIGN, OWNER, EXPIRES, RUN = "wanbench:campaign", "wanbench:owner", "wanbench:expires", "wanbench:run"
"""Tags of every resource. wanbench uses these names for every cloud, even if a cloud needs another spelling."""


@dataclass(frozen=True)
class Tags:
    """What the resources of one run carry; `expires_at` is when its hosts end themselves."""

    run: str
    campaign: str
    owner: str
    expires_at: datetime

    def values(self) -> dict[str, str]:
        """Tag to value, none longer than clouds allow."""
        expires = self.expires_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {RUN: self.run, CAMPAIGN: self.campaign[:256], OWNER: self.owner[:256], EXPIRES: expires}


def expiry(tags: Mapping[str, str]) -> datetime | None:
    """The time in the expiry tag; None if it is missing or unreadable."""
    try:
        return datetime.strptime(tags[EXPIRES], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except (KeyError, ValueError):
        return None


def is_expired(tags: Mapping[str, str], now: datetime) -> bool:
    """Whether the expiry tag lies in the past; one that is missing or unreadable does not."""
    expires = expiry(tags)
    return expires is not None and expires <= now
