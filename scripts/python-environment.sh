#!/usr/bin/env bash
# Make .venv hold exactly what requirements.txt locks, hashes checked, and this package in place. Takes no time when
# that is so already: a stamp records the folder and the checksums it was made from.
set -eu
cd "$(dirname "$0")/.."
venv=.venv
stamp=$venv/wanbench-environment

wanted_stamp() {
    pwd -P
    cksum requirements.txt lib/pyproject.toml scripts/python-environment.sh
}

if [ -x $venv/bin/python ] && [ -f $stamp ] && [ "$(cat $stamp)" = "$(wanted_stamp)" ]; then
    exit 0
fi

if [ -L $venv ]; then
    echo "$venv is a link: an environment that another folder uses is not made anew from here." >&2
    exit 1
fi

python=$(scripts/find-python.sh) || {
    echo "No Python 3.11 or newer with venv was found; scripts/system-packages.sh says how to get one." >&2
    exit 1
}
if ! $venv/bin/python -c 'import pip, sys; sys.version_info >= (3, 11) or sys.exit(1)' 2>/dev/null ||
    [ "$(head -n 1 $stamp 2>/dev/null || pwd -P)" != "$(pwd -P)" ]; then
    echo "Making $venv with $python" >&2
    "$python" -m venv --clear $venv
fi
rm -f $stamp

# uv installs the lock in seconds; it comes from the lock itself, by pip, which checks its hash.
uv_lines=$(mktemp)
trap 'rm -f "$uv_lines"' EXIT
awk '/^uv==/ { wanted = 1 } wanted { print } wanted && !/\\$/ { exit }' requirements.txt >"$uv_lines"
echo "Installing Python packages from requirements.txt" >&2
$venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
    --require-hashes --no-deps --only-binary :all: -r "$uv_lines"

if ! $venv/bin/uv pip sync --quiet --python $venv/bin/python --require-hashes --only-binary :all: requirements.txt; then
    echo "uv could not install the locked packages; trying pip, which may be set up for another index." >&2
    $venv/bin/python -m ensurepip >/dev/null 2>&1 || true
    $venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
        --require-hashes --no-deps --only-binary :all: -r requirements.txt
fi
$venv/bin/uv pip install --quiet --python $venv/bin/python --offline --no-build-isolation --no-deps --editable lib
# Compiled once, here: the processes that start next would each do it, at the same time.
packages=$($venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
$venv/bin/python -m compileall -q -j 0 -x '/(tests|validators|moto|jc|jedi|debugpy|setuptools)/' "$packages" lib/wanbench >/dev/null || true
wanted_stamp >$stamp
# What running a notebook leaves in it is no change: git compares it stripped, as it is committed.
git config filter.strip-outputs.clean ".venv/bin/python -S scripts/strip-outputs.py" 2>/dev/null || true
