"""Pages on posts, drafts, photos and the calendar."""
