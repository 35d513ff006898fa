"""Benchmarks of the service and its peers on the same data and tasks: `python -m benchmarks` (`make bench`)."""
