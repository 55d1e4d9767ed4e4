"""What a host of AWS does at its first start."""

from __future__ import annotations

from wanbench.measure.labs.rented import user_data as shared

VOLUME_DEVICE = "/dev/sdf"


def user_data(*, volume: bool = False, **given) -> str:
    """
    See `wanbench.measure.labs.rented.user_data`; launched with instance-initiated shutdown = terminate, a host that powers off
    is gone.
    """
    return shared.user_data(volume_device=VOLUME_DEVICE if volume else None, **given)
