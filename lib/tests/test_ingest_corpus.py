"""Files that `make fuzz` or reading found: each ends in rows or in a RawDataError that says what was expected."""

from fnmatch import fnmatch
from pathlib import Path

import pytest

from wanbench.errors import RawDataError
from wanbench.read.ingest.readers import readers

FOUND = sorted(Path(__file__).with_name("corpus").glob("*/*"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}-{path.name[:8]}")
def test_a_found_file_is_read_or_refused(path):
    fitting = [each for each in readers(path.parent.name) if fnmatch(path.name, each.pattern or "*")]
    assert fitting
    for reader in fitting:
        try:
            assert reader.read(path)
        except RawDataError as error:
            assert error.expected
