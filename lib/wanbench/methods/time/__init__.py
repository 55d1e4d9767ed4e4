"""Values in time: autocorrelated series, rates of counters, two arms compared."""
