"""What `riffle race` runs in Python: our own contenders with real compute, and their times."""
