"""RTT and throughput against distance: lines, path inflation, predictions."""
