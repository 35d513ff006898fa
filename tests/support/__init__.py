"""What tests share: builders, assertions, servers and clients."""
