#!/usr/bin/env bash
# Print the path of a Python that can hold the environment: 3.11 or newer, with venv and pip. Exit 1 if there is none.
set -u

for candidate in python3.13 python3.12 python3.11 python3; do
    command -v "$candidate" >/dev/null 2>&1 || continue
    if "$candidate" -c 'import sys, venv, ensurepip; sys.version_info >= (3, 11) or sys.exit(1); print(sys.executable)' \
        2>/dev/null; then
        exit 0
    fi
done
exit 1
