"""Finding what runs left on Google Cloud, in the whole project, and deleting it on confirmation."""

from __future__ import annotations

import os
from pathlib import Path

from ..rented import sweep as shared
from .clients import Gcp, installed
from .teardown import GcpEstate

VARIABLES = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT")


def sweep(*, gcp: Gcp | None = None, **options) -> int:
    """See `wanbench.labs.rented.sweep`."""
    return shared(GcpEstate(gcp), **options)


def unusable() -> str | None:
    """Why the project cannot be asked here; None if it may be. Nothing is asked over the network."""
    if not installed():
        return "the extra gcp is not installed"
    folder = Path(os.environ.get("CLOUDSDK_CONFIG", "~/.config/gcloud")).expanduser()
    if any(os.environ.get(name) for name in VARIABLES):
        return None
    if (folder / "application_default_credentials.json").exists():
        return None
    return f"neither {' nor '.join(VARIABLES)} is set and gcloud left no credentials"
