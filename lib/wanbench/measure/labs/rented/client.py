"""Define what the clients of all clouds share: errors without account names, checks of quotas and packages, a clock."""

import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from importlib.util import find_spec

from wanbench.errors import LabError

CLOCK_TIMEOUT_S = 10.0


class CloudError(LabError):
    """
    A cloud refuses a call or does not answer.

    `code` is the cloud's error code, such as "InsufficientInstanceCapacity", or "" if no answer came. `is_gone` says
    whether the resource does not exist. The message contains no account, user, project or key.
    """

    def __init__(self, message: str, code: str = "", *, is_gone: bool = False):
        super().__init__(message)
        self.code, self.is_gone = code, is_gone


def hidden(text: str, private: Iterable[tuple[str, str]]) -> str:
    """Replace each (pattern, replacement) of `private` in a message, and shorten this to one line of 500 characters."""
    for pattern, instead in private:
        text = re.sub(pattern, instead, text)
    return " ".join(text.split())[:500]


def too_small(where: str, needed: Mapping[str, float], quotas: Mapping[str, Sequence[float]], ask: str) -> list[str]:
    """
    Return a sentence for each quota, given as (used, limit), that is too small for what is needed. Unknown quotas are
    not checked. `ask` says where a larger quota can be requested.
    """
    return [
        f"{where}: {value} {name} are needed, but {quotas[name][0]:g} of the quota of {quotas[name][1]:g} are in use; "
        f"request a larger quota under {ask}."
        for name, value in needed.items()
        if name in quotas and quotas[name][0] + value > quotas[name][1]
    ]


def clock_at(address: str) -> datetime | None:
    """Return the time in an HTTP server's answer, even if the answer is an error; None if it has no time."""
    try:
        request = urllib.request.Request(address, method="HEAD")
        try:
            # The address is a constant of a cloud.
            with urllib.request.urlopen(request, timeout=CLOCK_TIMEOUT_S) as answer:  # nosec B310
                date = answer.headers["Date"]
        except urllib.error.HTTPError as refused:
            date = refused.headers["Date"]
        return parsedate_to_datetime(date)
    except (OSError, HTTPException, TypeError, ValueError):
        return None


def installed(*modules: str) -> bool:
    """Return whether these modules are installed. They are not imported, because that may take seconds."""
    try:
        return all(find_spec(module) for module in modules)
    except ModuleNotFoundError:
        return False


def how_to_install(title: str, package: str, extra: str) -> str:
    """Return a sentence that says how to install the extra that a cloud needs."""
    by = f"in the checkout by pip install './lib[{extra}]'"
    return f"Hosts on {title} need the package {package}: install the extra {extra}, {by}."
