"""What time it is at a cloud: this machine's clock may be wrong, and resources carry times at which they may go."""

from __future__ import annotations

import urllib.error
import urllib.request
from datetime import datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException

TIMEOUT_S = 10.0


def clock_at(address: str) -> datetime | None:
    """The time in an HTTP server's answer, whatever else it answers; None if it tells none."""
    try:
        try:
            with urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=TIMEOUT_S) as told:
                date = told.headers["Date"]
        except urllib.error.HTTPError as refused:
            date = refused.headers["Date"]
        return parsedate_to_datetime(date)
    except (OSError, HTTPException, TypeError, ValueError):
        return None
