"""What others have published, read into the tables of `tables`; where it came from is recorded."""
