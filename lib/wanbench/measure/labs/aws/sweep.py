"""Finding what runs left on AWS, in all regions, and deleting it on confirmation."""

from __future__ import annotations

from wanbench.measure.labs.rented import leases
from wanbench.measure.labs.rented import sweep as shared

from .clients import HOME, Aws, AwsError, session
from .msk_resources import MskResources, clusters
from .teardown import AwsResources


def sweep(*, aws: Aws | None = None, **options) -> int:
    """See `wanbench.measure.labs.rented.sweep`. MSK's clusters come first, as they use security groups."""
    aws = aws or Aws()
    return max(_sweep_msk(aws, options), shared(AwsResources(aws), **options))


def _sweep_msk(aws, options):
    try:
        clusters(aws, aws.home() or HOME)
    except AwsError as error:
        if error.code.startswith("AccessDenied"):
            ended = len(leases.free_leases(MskResources.cloud))
            and_left = f"; {ended} runs that ended here may have left a cluster" if ended else ""
            print(f"{MskResources.title}: not looked at, as kafka:ListClustersV2 is not allowed{and_left}.")
            return 1 if ended else 0
    return shared(MskResources(aws), **options)


def unusable() -> str | None:
    """Why the account cannot be asked here; None if it can."""
    return None if session().get_credentials() else "boto3 finds no credentials"
