"""RTT and throughput against distance: lines, envelope, ceiling, path inflation, clouds compared, predictions."""
