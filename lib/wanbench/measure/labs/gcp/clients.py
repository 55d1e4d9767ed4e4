"""
Calls of Google's Compute API: every call of this package goes through `Gcp.call` or `Gcp.pages`, named by
literals, so that the permissions in docs/clouds/gcp.md can be checked against them.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from typing import Any

from wanbench.errors import LabError
from wanbench.measure.labs.rented.extras import how_to_install, installed

ATTEMPTS = 6
"""Attempts of one request that meets a limit of requests, a server's error or a broken connection."""
PAUSE_S = 1.0
"""Pause before the second attempt; it doubles with each."""
TIMEOUT_S = 20.0
"""Timeout of a request: a silent service must not keep other resources from being taken down."""
POLL_S = 2.0
OPERATION_S = 300.0
"""Timeout of a long-running operation."""
PASSING = (429, 500, 502, 503, 504)
EXTRA = how_to_install("Google Cloud", "google-cloud-compute", "gcp")
ENDPOINT = "https://compute.googleapis.com"
MODULE = "google.cloud.compute_v1"

_PRIVATE = (
    (re.compile(r"projects/[^/\s'\"]+"), "projects/(project)"),
    (re.compile(r"[^\s@'\"<>:]+@[^\s@'\"<>]+"), "(account)"),
    (re.compile(r"(?<![\d.])\d{9,14}(?![\d.])"), "(number)"),
)


class GcpError(LabError):
    """
    Google Cloud refuses a call or does not answer.

    `code` is Google's own, such as "ZONE_RESOURCE_POOL_EXHAUSTED", or the status of HTTP as text; empty where no answer
    came. The message holds no project and no account.
    """

    def __init__(self, message: str, code: str = ""):
        super().__init__(message)
        self.code = code


class Gcp:
    """
    Clients of one project, by service, made when first needed. Safe to use from several threads.

    Credentials and the project are found as google-auth finds them (GOOGLE_APPLICATION_CREDENTIALS,
    GOOGLE_CLOUD_PROJECT, what `gcloud auth application-default login` left); wanbench reads and keeps neither.

    `project`, `credentials` and `endpoint` stand in place of what is found.
    """

    def __init__(
        self,
        *,
        project: str | None = None,
        credentials: Any = None,
        endpoint: str | None = None,
        pause_s: float = PAUSE_S,
        poll_s: float = POLL_S,
    ):
        if not installed(MODULE):
            raise LabError(EXTRA)
        self._lock, self._clients = threading.Lock(), {}
        self._project, self._credentials, self._endpoint = project, credentials, endpoint
        self.endpoint = endpoint or ENDPOINT
        self.pause_s, self.poll_s = pause_s, poll_s

    @property
    def project(self) -> str:
        """Never shown, written or printed; LabError if none is known."""
        self._find()
        return self._project

    def call(self, service: str, operation: str, /, **request) -> Any:
        """One call; the answer, a message of `google.cloud.compute_v1`. GcpError if it fails."""
        whole = {"project": self.project} | request
        return self._told(service, operation, lambda method, **how: method(whole, **how))

    def pages(self, service: str, operation: str, /, **request) -> list:
        """What all pages of an answer have, or all scopes of an aggregated list; GcpError if any is missing."""

        def all_of(method, **how):
            found = []
            for each in method({"project": self.project} | request, **how):
                found += list(_in_scope(service, *each)) if isinstance(each, tuple) else [each]
            return found

        return self._told(service, operation, all_of)

    def wait(self, operation: Any) -> None:
        """Return once an operation is done; GcpError if it fails, or is not done within `OPERATION_S`."""
        deadline = time.monotonic() + OPERATION_S
        while operation.status != type(operation).Status.DONE:
            if time.monotonic() > deadline:
                raise GcpError(f"{operation.operation_type} is not done after {OPERATION_S:g} s.")
            time.sleep(self.poll_s)
            name, region, zone = operation.name, _last(operation.region), _last(operation.zone)
            if zone:
                operation = self.call("zone_operations", "get", operation=name, zone=zone)
            elif region:
                operation = self.call("region_operations", "get", operation=name, region=region)
            else:
                operation = self.call("global_operations", "get", operation=name)
        for error in operation.error.errors:
            told = self.hidden(error.message)
            where = _last(operation.zone) or _last(operation.region) or "all regions"
            raise GcpError(f"{operation.operation_type} in {where}: {error.code}: {told}", error.code)

    def _told(self, service, operation, ask):
        from google.api_core.exceptions import GoogleAPICallError
        from google.auth.exceptions import GoogleAuthError
        from requests.exceptions import RequestException

        method = getattr(self._client(service), operation)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return ask(method, retry=None, timeout=TIMEOUT_S)
            except GoogleAPICallError as error:
                code, text, passing = str(int(error.code or 0)), error.message, error.code in PASSING
            except RequestException as error:
                code, text, passing = "", str(error) or type(error).__name__, True
            except GoogleAuthError as error:
                code, text, passing = "", str(error), False
            if not passing or attempt == ATTEMPTS:
                break
            time.sleep(self.pause_s * 2 ** (attempt - 1))
        told = f"{service} {operation}: {code + ': ' if code else ''}{self.hidden(text)}"
        raise GcpError(told, code) from None  # not chained: the original message names the project

    def _client(self, service):
        from google.cloud import compute_v1  # takes seconds, which only users of Google Cloud should pay

        self._find()
        with self._lock:
            if service not in self._clients:
                kind = "".join(word.capitalize() for word in service.split("_")) + "Client"
                options = {"api_endpoint": self._endpoint} if self._endpoint else None
                how = {"credentials": self._credentials, "transport": "rest", "client_options": options}
                self._clients[service] = getattr(compute_v1, kind)(**how)
            return self._clients[service]

    def _find(self):
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError

        with self._lock:
            if self._credentials is None:
                try:
                    self._credentials, found = google.auth.default()
                except DefaultCredentialsError:
                    raise LabError(
                        "No credentials of Google Cloud are found; `gcloud auth application-default login` makes some."
                    ) from None
                self._project = self._project or found
            if not self._project:
                raise LabError("No project of Google Cloud is known; set GOOGLE_CLOUD_PROJECT.")

    def hidden(self, text: str) -> str:
        """A message of Google Cloud without this project, other projects and accounts."""
        return without_identities(text.replace(self.project, "(project)"))


def without_identities(text: str) -> str:
    """
    A message of Google Cloud without projects and accounts.

    >>> without_identities("Required 'compute.instances.create' permission for 'projects/ada-1/zones/z', eve@x.org")
    "Required 'compute.instances.create' permission for 'projects/(project)/zones/z', (account)"
    """
    for pattern, instead in _PRIVATE:
        text = pattern.sub(instead, text)
    return text[:500]


def _in_scope(service, name, scoped) -> Iterator:
    """What one zone or region has; a scope that did not answer is an error, as what is not known is not gone."""
    if scoped.warning.code not in ("", "NO_RESULTS_ON_PAGE"):
        raise GcpError(f"{service} in {name}: {scoped.warning.code}", scoped.warning.code)
    yield from getattr(scoped, service)


def _last(link: str) -> str:
    return link.rpartition("/")[2]
