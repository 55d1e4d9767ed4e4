"""Whether intervals cover: every method tried on simulated data whose answer is known."""
