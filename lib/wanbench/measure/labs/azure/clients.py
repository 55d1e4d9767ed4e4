"""
Calls of Azure's Resource Manager. Every call of this package goes through `Azure.call` or `Azure.pages`, with service
and operation named by literals, so that a test can compare them with the permissions in docs/clouds/azure.md.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from wanbench.errors import LabError
from wanbench.measure.labs.rented.client import CloudError, hidden, how_to_install, installed

RETRIES = 5  # Retries of one request, after a rate limit, a server's error or a broken connection.
PAUSE_S = 1.0  # First pause between attempts, which doubles each time. Azure may request another one (Retry-After).
TIMEOUT_S = 30.0  # Timeout of a request: a service that does not answer must not delay other deletions.
POLL_S = 3.0
OPERATION_S = 900.0  # Timeout of a long-running operation.
# Error codes after which the same request may succeed later.
BUSY = ("AnotherOperationInProgress", "ReferencedResourceNotProvisioned", "RetryableError")
ENDPOINT = "https://management.azure.com"
VARIABLE = "AZURE_SUBSCRIPTION_ID"
PACKAGES = "azure-mgmt-compute (and azure-identity, azure-mgmt-network, azure-mgmt-resource)"
EXTRA = how_to_install("Azure", PACKAGES, "azure")
_ROOMS = {
    "compute": ("azure.mgmt.compute", "ComputeManagementClient"),
    "network": ("azure.mgmt.network", "NetworkManagementClient"),
    "resource": ("azure.mgmt.resource.resources", "ResourceManagementClient"),
}
MODULES = ("azure.identity", *(room for room, _ in _ROOMS.values()))
_PRIVATE = (
    (r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "(id)"),
    (r"(?i)(subscriptions|tenants)/[^/\s'\"]+", r"\1/(id)"),
    (r"[^\s@'\"<>:]+@[^\s@'\"<>]+", "(account)"),
)


class Azure:
    """
    The clients of one subscription, which are made when first needed. Safe to use from several threads.

    By default azure-identity finds the credentials (environment, managed identity, `az login`), and the subscription
    comes from the environment variable AZURE_SUBSCRIPTION_ID; wanbench stores and prints neither. `how` are further
    parameters of the clients.
    """

    def __init__(
        self,
        *,
        subscription: str | None = None,
        credential: Any = None,
        endpoint: str | None = None,
        pause_s: float = PAUSE_S,
        poll_s: float = POLL_S,
        **how: Any,
    ):
        if not installed(*MODULES):
            raise LabError(EXTRA)
        self.pause_s, self.poll_s = pause_s, poll_s
        self._lock, self._clients = threading.Lock(), {}
        self._subscription, self._credential, self._how = subscription, credential, how
        self.endpoint = endpoint or ENDPOINT
        if endpoint:
            self._how["base_url"] = endpoint

    @property
    def subscription(self) -> str:
        """Return the subscription's id, which is never written or printed; raise LabError if none is known."""
        subscription = self._subscription or os.environ.get(VARIABLE)
        if not subscription:
            example = "for example to the output of `az account show --query id --output tsv`"
            raise LabError(f"No subscription of Azure is known; set {VARIABLE}, {example}.")
        return subscription

    def path(self, group: str, kind: str, name: str, *below: str) -> str:
        """
        Return a resource's id, which contains the subscription. `kind` is a type, such as "Microsoft.Compute/disks".
        """
        parts = ("subscriptions", self.subscription, "resourceGroups", group, "providers", kind, name, *below)
        return f"/{'/'.join(parts)}"

    def call(
        self, service: str, kind: str, operation: str, /, *arguments: object, wait: bool = True, **options: object
    ) -> Any:
        """
        Call an operation of a service (compute, network or resource), and return its answer.

        For a long-running operation (begin_...), wait for its result, or return None at once if `wait` is false. Raise
        CloudError if the call fails, or the operation is not done within `OPERATION_S`.
        """

        def ask(method: Callable[..., Any]) -> Any:
            if not operation.startswith("begin_"):
                return method(*arguments, **options)
            started = method(*arguments, **options, polling=wait, polling_interval=self.poll_s)
            if not wait:
                return None
            started.wait(OPERATION_S)
            if not started.done():
                raise CloudError(f"{kind} {operation} is not done after {OPERATION_S:g} s.")
            return started.result()

        return self._ask(service, kind, operation, ask)

    def pages(self, service: str, kind: str, operation: str, /, *arguments: object, **options: object) -> list[Any]:
        """Return the items in all pages of an answer; raise CloudError if a page is missing."""
        return self._ask(service, kind, operation, lambda method: list(method(*arguments, **options)))

    def _ask(self, service: str, kind: str, operation: str, ask: Callable[[Any], Any]) -> Any:
        from azure.core.exceptions import AzureError as Failure
        from azure.core.exceptions import ClientAuthenticationError

        method = getattr(getattr(self._client(service), kind), operation)
        code, text, status = "", "", None
        for attempt in range(RETRIES + 1):
            try:
                return ask(method)
            except Failure as failure:
                details, status = getattr(failure, "error", None), getattr(failure, "status_code", None)
                code = getattr(details, "code", None) or ""
                text = getattr(details, "message", None) or failure.message or type(failure).__name__
                if isinstance(failure, ClientAuthenticationError) and status is None:
                    text = "there are no working credentials of Azure; `az login` makes some."
            if code not in BUSY or attempt == RETRIES:
                break
            time.sleep(self.pause_s * 2**attempt)
        text = without_identities(text.replace(self.subscription, "(id)"))
        message = f"{kind} {operation}: {code + ': ' if code else ''}{text}"
        raise CloudError(message, code, is_gone=status == 404) from None  # not chained: it names the subscription

    def _client(self, service: str) -> Any:
        subscription = self.subscription
        with self._lock:
            if service not in self._clients:
                if self._credential is None:
                    # Its messages about credentials that failed contain tenants, and would go to stderr.
                    logging.getLogger("azure.identity").setLevel(logging.CRITICAL)
                    self._credential = import_module("azure.identity").DefaultAzureCredential()
                room, kind = _ROOMS[service]
                _complete_models(room)
                how = {"retry_total": RETRIES, "retry_backoff_factor": self.pause_s, **self._how}
                timeouts = {"connection_timeout": TIMEOUT_S, "read_timeout": TIMEOUT_S}
                client = getattr(import_module(room), kind)
                self._clients[service] = client(self._credential, subscription, **how, **timeouts)
            return self._clients[service]


def without_identities(text: str) -> str:
    """
    Remove subscriptions, tenants and accounts from a message that Azure sent.

    >>> without_identities("'eve@x.org' may not write '/subscriptions/ada-1/resourceGroups/g'")
    "'(account)' may not write '/subscriptions/(id)/resourceGroups/g'"
    """
    return hidden(text, _PRIVATE)


def _complete_models(room: str) -> None:
    """
    Complete a package's models in this thread. Otherwise each model completes itself when it is first used; if several
    threads then use it at the same time, some get plain dicts in place of fields.
    """
    for model in vars(import_module(f"{room}.models")).values():
        if isinstance(model, type) and hasattr(model, "_calculated"):
            model.__new__(model)  # pyright: ignore[reportCallIssue]  # a model needs no arguments
