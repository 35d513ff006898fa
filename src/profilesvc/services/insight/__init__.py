"""Views of owners on their keys: requests, badges, the overview."""
