"""What owners see of their keys: requests, badges, the overview."""
