#!/usr/bin/env bash
# Build tansu, a broker of another make that speaks Kafka's protocol, into .kafka/tansu, for benchmarks/other_broker.py.
# Cargo fetches it from its default registry, with exactly the dependencies that this version was published with
# (--locked), and checks the hash of each. Takes about 17 minutes on two processors, and almost no time once it is built.
set -u
cd "$(dirname "$0")/.."
version=0.6.0 # libsql is its storage in an SQLite file; dynostore includes its storage in memory

command -v cargo >/dev/null 2>&1 || {
    echo "Cargo is missing, so tansu was not built. Install Rust 1.85 or later, then run $0 again." >&2
    exit 1
}
exec cargo install tansu --version "=$version" --locked --no-default-features --features libsql,dynostore --root .kafka/tansu
