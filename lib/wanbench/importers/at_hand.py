"""Published files for a page that can do without them. Imports `fetching`."""

from __future__ import annotations

from pathlib import Path

from .fetching import NotFetchedError, fetch


def at_hand(*names: str) -> list[Path | None]:
    """
    Each published file of `importers.describe()`, as `fetch` gives it; None where it cannot be had, and why is printed.

    So a section of a notebook can stay empty rather than stop the page:

    >>> results, places = at_hand("intercloud-2022-02", "intercloud-locations")  # doctest: +SKIP
    >>> survey = results and read_survey(results, places)  # doctest: +SKIP
    """
    found = []
    for name in names:
        try:
            found.append(fetch(name))
        except NotFetchedError as error:
            print(error)
            found.append(None)
    return found
