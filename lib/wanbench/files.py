"""Write files and folders atomically: they appear complete, or not at all."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(path: Path) -> Generator[None]:
    """Add `path` to an OSError of the `with` block that names no file, such as "No space left on device"."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:  # without a number, the file's name would take the place of the message
            error.filename = error.filename or str(path)
        raise


@contextmanager
def replaced_file(path: Path) -> Generator[Path]:
    """Yield a temporary path to write to; on success it replaces `path`, otherwise it is removed."""
    path = Path(path)
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".tmp")
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, then rename it to `path`."""
    with replaced_file(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def replaced_folder(path: Path) -> Generator[Path]:
    """Yield a new folder to fill; on success it replaces `path`, otherwise it is removed."""
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-"))
        try:
            yield temporary
            os.chmod(temporary, 0o755)  # nosec B103  # a published folder is for all to read
            shutil.rmtree(path, ignore_errors=True)
            os.replace(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
