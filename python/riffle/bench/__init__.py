"""Benchmarks that are Python: `python -m riffle.bench.ddp`, or `riffle bench ddp`."""

# The model alone exchanges nothing.
CONTENDERS = ("gloo", "riffle", "alone")
