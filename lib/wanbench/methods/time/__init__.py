"""Values in time: autocorrelated series."""
