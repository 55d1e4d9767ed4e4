"""Import the modules that notebooks need, in the process from which their kernels and a batch's jobs are forked."""

import atexit
import gc
import os
import shutil
import sys

folder, server = os.environ.pop("WANBENCH_FORK_SERVER", None), os.getpid()
if folder:  # which a command that is killed cannot remove
    atexit.register(lambda: os.getpid() == server and shutil.rmtree(str(folder), ignore_errors=True))
gc.disable()  # modules that load make many objects and no garbage
# jsonschema would build its unused grammar for a second
sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType]  # None forbids the import
os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"  # which plotly reads when it is imported
import ipykernel.ipkernel  # noqa: E402  # pyright: ignore[reportUnusedImport]
import ipykernel.kernelapp  # noqa: E402, F401  # pyright: ignore[reportUnusedImport]
import scipy.stats  # noqa: E402, F401  # pyright: ignore[reportUnusedImport]

import wanbench.methods  # noqa: E402  # pyright: ignore[reportUnusedImport]
import wanbench.read.importers  # noqa: E402  # pyright: ignore[reportUnusedImport]
import wanbench.read.ingest  # noqa: E402, F401  # pyright: ignore[reportUnusedImport]

from .batch_bucket import FarJob  # noqa: E402, F401  # pyright: ignore[reportUnusedImport]
from .site import library_hash  # noqa: E402

library_hash(strict=False)  # of what is imported here, also if files change before a job starts
os.chdir("/")  # the folder in which the command was started can be removed
gc.freeze()  # nor does any fork look through them again
gc.enable()
