"""
Calls of the AWS API: every call of this package goes through `Aws.call` or `Aws.pages`, named by literals, so
that the permissions in docs/clouds/aws.md can be checked against them.
"""

from __future__ import annotations

import os
import re
import threading
from functools import cache
from typing import Any

from wanbench.errors import LabError

MAX_ATTEMPTS = 6
"""
Attempts of one request, with growing pauses (botocore's mode "standard"), unless AWS_MAX_ATTEMPTS gives another number.
"""
TIMEOUT_S = 20
"""A region that does not answer must not keep the others from being taken down."""
HOME = "us-east-1"
"""Region for questions about the whole account, unless AWS_REGION or a profile names a region of another partition."""

_PRIVATE = (
    (re.compile(r"Encoded authorization failure message: \S+"), "(encoded message left out)"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}"), "(key id)"),
    (re.compile(r"(?<!\d)\d{12}(?!\d)"), "(account)"),
    (re.compile(r"(?<=User: )\S+"), "(you)"),
)


class AwsError(LabError):
    """
    AWS refuses a call or does not answer.

    `code` is AWS's own, such as "InsufficientInstanceCapacity"; empty where no answer came. The message holds no
    account id, no user, no key id and no encoded message.
    """

    def __init__(self, message: str, code: str = ""):
        super().__init__(message)
        self.code = code


class Aws:
    """
    Clients of one account, by service and region, made when first needed. Safe to use from several threads.

    Credentials and AWS_ENDPOINT_URL are found as boto3 finds them; wanbench reads neither.
    """

    def __init__(self):
        self._lock, self._clients, self._session = threading.Lock(), {}, None

    def client(self, service: str, region: str) -> Any:
        """The boto3 client."""
        from botocore.config import Config  # takes a third of a second, which only users of AWS should pay

        with self._lock:
            if self._session is None:
                self._session = session()
            if (service, region) not in self._clients:
                attempts = int(os.environ.get("AWS_MAX_ATTEMPTS", MAX_ATTEMPTS))
                self._clients[service, region] = self._session.client(
                    service,
                    region_name=region,
                    config=Config(
                        retries={"mode": "standard", "total_max_attempts": attempts},
                        connect_timeout=TIMEOUT_S,
                        read_timeout=TIMEOUT_S,
                    ),
                )
            return self._clients[service, region]

    def home(self) -> str | None:
        """The region that AWS_REGION or a profile names."""
        return session().region_name

    def account(self) -> str:
        """The account's number; AwsError if AWS does not tell it."""
        return self.call("sts", self.home() or HOME, "get_caller_identity")["Account"]

    def call(self, service: str, region: str, operation: str, **arguments) -> dict:
        """One call; AwsError if it fails."""
        return self._told(service, region, operation, lambda client: getattr(client, operation)(**arguments))

    def pages(self, service: str, region: str, operation: str, key: str, **arguments) -> list[dict]:
        """What all pages of an answer have under `key`; AwsError if a page is missing."""

        def all_of(client):
            found = client.get_paginator(operation).paginate(**arguments)
            return [each for page in found for each in page.get(key, [])]

        return self._told(service, region, operation, all_of)

    def _told(self, service, region, operation, ask):
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
        raise AwsError(message, code) from None


def session() -> Any:
    """
    A boto3 session; all of a process share the descriptions of services, as EC2 alone takes a third of a second.
    AwsError if its profile cannot be read.
    """
    import boto3
    import botocore.session
    from botocore.exceptions import BotoCoreError

    core = botocore.session.get_session()
    core.register_component("data_loader", _descriptions())
    try:
        core.get_scoped_config()
    except BotoCoreError as error:
        raise AwsError(f"boto3 cannot read its configuration: {error}") from None
    return boto3.session.Session(botocore_session=core)


@cache
def _descriptions():
    from botocore.loaders import create_loader

    return create_loader()


def without_identities(text: str) -> str:
    """
    A message of AWS without account ids, users, key ids and encoded messages.

    >>> without_identities("User: arn:aws:iam::123456789012:user/eve may not use arn:aws:iam::123456789012:role/r")
    'User: (you) may not use arn:aws:iam::(account):role/r'
    """
    for pattern, instead in _PRIVATE:
        text = pattern.sub(instead, text)
    return text[:500]
