"""Drafts of posts, their photos, and posts for several locations."""
