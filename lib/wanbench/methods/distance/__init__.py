"""Analyse RTT and throughput against distance: straight lines, path inflation, and RTTs faster than light."""
