"""
Calls of the AWS API. Every call of this package goes through `Aws.call` or `Aws.pages`, with service and operation
named by literals, so that a test can compare them with the permissions in docs/clouds/aws.md.
"""

import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from wanbench.measure.labs.rented.client import CloudError, hidden

MAX_ATTEMPTS = 6  # Attempts of one request (botocore's mode "standard"), unless AWS_MAX_ATTEMPTS gives another number.
TIMEOUT_S = 20  # A region that does not answer must not delay deletion in the others.
# Region for calls about the whole account, unless AWS_REGION or a profile names one (of another partition).
HOME = "us-east-1"

_PRIVATE = (
    (r"Encoded authorization failure message: \S+", "(encoded message left out)"),
    (r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}", "(key id)"),
    (r"(?<!\d)\d{12}(?!\d)", "(account)"),
    (r"(?<=User: )\S+", "(you)"),
)


class Aws:
    """
    The boto3 clients of one account, which are made when first needed. Safe to use from several threads.

    boto3 finds the credentials and AWS_ENDPOINT_URL; wanbench reads neither.
    """

    def __init__(self):
        self._lock, self._clients, self._session = threading.Lock(), {}, None

    def client(self, service: str, region: str) -> Any:
        """Return the boto3 client of a service in a region."""
        from botocore.config import Config  # takes a third of a second, which only users of AWS should pay

        with self._lock:
            if self._session is None:
                self._session = session()
            if (service, region) not in self._clients:
                attempts = int(os.environ.get("AWS_MAX_ATTEMPTS", MAX_ATTEMPTS))
                retries = {"mode": "standard", "total_max_attempts": attempts}
                config = Config(retries=retries, connect_timeout=TIMEOUT_S, read_timeout=TIMEOUT_S)
                self._clients[service, region] = self._session.client(service, region_name=region, config=config)
            return self._clients[service, region]

    def home(self) -> str:
        """Return the region for calls about the whole account."""
        return session().region_name or HOME

    def account(self) -> str:
        """Return the number of the AWS account."""
        return self.call("sts", self.home(), "get_caller_identity")["Account"]

    def call(self, service: str, region: str, operation: str, **arguments: object) -> dict[str, Any]:
        """Call an operation of a service in a region, and return its answer; raise CloudError if it fails."""
        return self._ask(service, region, operation, lambda client: getattr(client, operation)(**arguments))

    def pages(self, service: str, region: str, operation: str, key: str, **arguments: object) -> list[Any]:
        """Return the items under `key` in all pages of an answer; raise CloudError if a page is missing."""

        def all_of(client: Any) -> list[Any]:
            pages = client.get_paginator(operation).paginate(**arguments)
            return [item for page in pages for item in page.get(key, [])]

        return self._ask(service, region, operation, all_of)

    def _ask(self, service: str, region: str, operation: str, ask: Callable[[Any], Any]) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return ask(self.client(service, region))
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            text = error.response.get("Error", {}).get("Message", "")
        except BotoCoreError as error:
            code, text = "", str(error)
        # Not chained: the original message may name the account.
        message = f"{service} {operation} in {region}: {code + ': ' if code else ''}{without_identities(text)}"
        raise CloudError(message, code, is_gone=code.endswith((".NotFound", "NotFoundException"))) from None


def session() -> Any:
    """
    Make a boto3 session; raise CloudError if its profile cannot be read. All sessions share the descriptions of
    services, because loading EC2's alone takes a third of a second.
    """
    import boto3
    import botocore.session
    from botocore.exceptions import BotoCoreError

    core = botocore.session.get_session()
    core.register_component("data_loader", _descriptions())
    try:
        core.get_scoped_config()
    except BotoCoreError as error:
        raise CloudError(f"boto3 cannot read its configuration: {error}") from None
    return boto3.session.Session(botocore_session=core)


@cache
def _descriptions():
    from botocore.loaders import create_loader

    return create_loader()


def without_identities(text: str) -> str:
    """
    Remove account ids, users, key ids and encoded messages from a message that AWS sent.

    >>> without_identities("User: arn:aws:iam::123456789012:user/eve may not use arn:aws:iam::123456789012:role/r")
    'User: (you) may not use arn:aws:iam::(account):role/r'
    """
    return hidden(text, _PRIVATE)
