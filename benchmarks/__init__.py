"""The service beside its peers on the same data and work, in one run: `python -m benchmarks` (`make bench`)."""
