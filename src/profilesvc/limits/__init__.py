"""Rate limits: buckets, rates, counters in memory and in Redis."""
