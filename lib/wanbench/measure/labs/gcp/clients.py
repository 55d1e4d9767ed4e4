"""
Calls of Google's Compute API, and the names and tags of a run's resources. Every call of this package goes through
`Gcp.call` or `Gcp.pages`, with service and operation named by literals, so that a test can compare them with the
permissions in docs/clouds/gcp.md.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from wanbench.errors import LabError
from wanbench.measure.labs.rented.client import CloudError, hidden, how_to_install, installed
from wanbench.measure.labs.rented.resources import RUN, Tags

MAX_ATTEMPTS = 6  # Attempts of one request, after a rate limit, a server's error or a broken connection.
PAUSE_S = 1.0  # Pause before the second attempt; it doubles with each further attempt.
TIMEOUT_S = 20.0  # Timeout of a request: a service that does not answer must not delay other deletions.
POLL_S = 2.0
OPERATION_S = 300.0  # Timeout of a long-running operation.
TEMPORARY = (429, 500, 502, 503, 504)
EXTRA = how_to_install("Google Cloud", "google-cloud-compute", "gcp")
ENDPOINT = "https://compute.googleapis.com"
MODULE = "google.cloud.compute_v1"
LABEL = "wanbench-run"  # Label of instances and disks, whose value is the run's id: it appears in bills.

_PRIVATE = (
    (r"projects/[^/\s'\"]+", "projects/(project)"),
    (r"[^\s@'\"<>:]+@[^\s@'\"<>]+", "(account)"),
    (r"(?<![\d.])\d{9,14}(?![\d.])", "(number)"),
)


class Gcp:
    """
    The clients of one project, each made when first needed. Safe to use from several threads.

    If credentials or project are not given, google-auth finds them: in the environment variables
    GOOGLE_APPLICATION_CREDENTIALS and GOOGLE_CLOUD_PROJECT, or where `gcloud auth application-default login` wrote
    them. wanbench stores neither.
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
        self._project: Any = project
        self._credentials = credentials
        self.endpoint = endpoint or ENDPOINT
        self.pause_s, self.poll_s = pause_s, poll_s

    @property
    def project(self) -> str:
        """Return the project's id, which is never written or printed; raise LabError if none is known."""
        self._find()
        return self._project

    def call(self, service: str, operation: str, /, **request: object) -> Any:
        """
        Call an operation, and return its answer, a `google.cloud.compute_v1` message; raise CloudError if it fails.
        """
        whole = {"project": self.project} | request
        return self._ask(service, operation, lambda method, **how: method(whole, **how))

    def pages(self, service: str, operation: str, /, **request: object) -> list[Any]:
        """
        Return the items in all pages of an answer, or in all scopes of an aggregated list; raise CloudError on failure.
        """

        def all_of(method: Callable[..., Iterable[Any]], **how: Any) -> list[Any]:
            items = []
            for item in method({"project": self.project} | request, **how):
                items += _in_scope(service, *item) if isinstance(item, tuple) else [item]
            return items

        return self._ask(service, operation, all_of)

    def wait(self, operation: Any) -> None:
        """Wait until an operation is done; raise CloudError if it fails, or is not done within `OPERATION_S`."""
        deadline = time.monotonic() + OPERATION_S
        while operation.status != type(operation).Status.DONE:
            if time.monotonic() > deadline:
                raise CloudError(f"{operation.operation_type} is not done after {OPERATION_S:g} s.")
            time.sleep(self.poll_s)
            name, region, zone = operation.name, last(operation.region), last(operation.zone)
            if zone:
                operation = self.call("zone_operations", "get", operation=name, zone=zone)
            elif region:
                operation = self.call("region_operations", "get", operation=name, region=region)
            else:
                operation = self.call("global_operations", "get", operation=name)
        for error in operation.error.errors:
            where = last(operation.zone) or last(operation.region) or "all regions"
            text = f"{operation.operation_type} in {where}: {error.code}: {self.hidden(error.message)}"
            raise CloudError(text, error.code)

    def _ask(self, service: str, operation: str, ask: Callable[..., Any]) -> Any:
        from google.api_core.exceptions import GoogleAPICallError
        from google.auth.exceptions import GoogleAuthError
        from requests.exceptions import RequestException

        method, code, text = getattr(self._client(service), operation), "", ""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return ask(method, retry=None, timeout=TIMEOUT_S)
            except GoogleAPICallError as error:
                code, text, is_temporary = str(int(error.code or 0)), error.message, error.code in TEMPORARY
            except RequestException as error:
                code, text, is_temporary = "", str(error) or type(error).__name__, True
            except GoogleAuthError as error:
                code, text, is_temporary = "", str(error), False
            if not is_temporary or attempt == MAX_ATTEMPTS:
                break
            time.sleep(self.pause_s * 2 ** (attempt - 1))
        message = f"{service} {operation}: {code + ': ' if code else ''}{self.hidden(text)}"
        raise CloudError(message, code, is_gone=code == "404") from None  # not chained: the original names the project

    def _client(self, service: str) -> Any:
        from google.cloud import compute_v1  # takes seconds, which only users of Google Cloud should pay

        self._find()
        with self._lock:
            if service not in self._clients:
                kind = "".join(word.capitalize() for word in service.split("_")) + "Client"
                options = {"api_endpoint": self.endpoint} if self.endpoint != ENDPOINT else None
                how = {"credentials": self._credentials, "transport": "rest", "client_options": options}
                self._clients[service] = getattr(compute_v1, kind)(**how)
            return self._clients[service]

    def _find(self):
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError

        with self._lock:
            if self._credentials is None:
                try:
                    self._credentials, project = google.auth.default()
                except DefaultCredentialsError:
                    raise LabError(
                        "There are no credentials of Google Cloud; `gcloud auth application-default login` makes some."
                    ) from None
                self._project = self._project or project
            if not self._project:
                raise LabError("No project of Google Cloud is known; set GOOGLE_CLOUD_PROJECT.")

    def hidden(self, text: str) -> str:
        """Remove this project, other projects and accounts from a message that Google Cloud sent."""
        return without_identities(text.replace(self.project, "(project)"))


def without_identities(text: str) -> str:
    """
    Remove projects and accounts from a message that Google Cloud sent.

    >>> without_identities("Required 'compute.instances.create' permission for 'projects/ada-1/zones/z', eve@x.org")
    "Required 'compute.instances.create' permission for 'projects/(project)/zones/z', (account)"
    """
    return hidden(text, _PRIVATE)


def name(run: str, *parts: str) -> str:
    """
    Return the name of a run's resource.

    >>> name("0123456789abcdef", "operator")
    'wanbench-0123456789abcdef-operator'
    """
    return "-".join(("wanbench", run, *parts))


def description(tags: Tags) -> str:
    """Return tags as a resource's description, because networks, subnets and rules have no labels."""
    return json.dumps(tags.values())


def tags_of(described: Any) -> dict[str, str]:
    """Return the tags in a resource's description; {} if no run made the resource."""
    try:
        tags = json.loads(described.description)
    except ValueError:
        return {}
    return tags if isinstance(tags, dict) and isinstance(tags.get(RUN), str) else {}


def last(link: str) -> str:
    """Return the name at the end of a resource's URL."""
    return link.rpartition("/")[2]


def _in_scope(service: str, name: str, scoped: Any) -> list[Any]:
    """
    Return the items of one zone or region; raise CloudError if it did not answer, because it may then have unlisted
    resources.
    """
    if scoped.warning.code not in ("", "NO_RESULTS_ON_PAGE"):
        raise CloudError(f"{service} in {name}: {scoped.warning.code}", scoped.warning.code)
    return list(getattr(scoped, service))
