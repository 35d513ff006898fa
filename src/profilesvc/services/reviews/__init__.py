"""Reviews and replies, and the copies of them that are kept."""
