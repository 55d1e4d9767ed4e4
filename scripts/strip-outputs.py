"""
Strip a notebook of what running leaves: git compares the result (standard input to output) with what is committed.

It does what `make format` does by nbstripout, without imports that take a second: git calls it for every notebook.
"""

import json
import sys

raw = sys.stdin.buffer.read()
try:
    notebook = json.loads(raw)
    for cell in notebook["cells"]:
        for name in ("papermill", "execution", "collapsed", "scrolled", "ExecuteTime"):
            cell["metadata"].pop(name, None)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    metadata = notebook["metadata"]
    metadata.pop("papermill", None)
    if "language_info" in metadata:
        metadata["language_info"] = {"name": metadata["language_info"]["name"]}
    raw = (json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
except (ValueError, KeyError, TypeError, AttributeError):
    pass  # no notebook: git gets it as it is
sys.stdout.buffer.write(raw)
