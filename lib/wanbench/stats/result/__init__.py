"""What every analysis returns: estimates with intervals, their sentences and cautions, as text, table and HTML."""
