"""Finding what runs left on AWS, in all regions, and deleting it on confirmation."""

from __future__ import annotations

from ..rented import sweep as shared
from .clients import Aws, session
from .teardown import AwsEstate


def sweep(*, aws: Aws | None = None, **options) -> int:
    """See `wanbench.labs.rented.sweep`."""
    return shared(AwsEstate(aws), **options)


def unusable() -> str | None:
    """Why the account cannot be asked here; None if it can."""
    return None if session().get_credentials() else "boto3 finds no credentials"
