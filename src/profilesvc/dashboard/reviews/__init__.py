"""Pages on reviews and templates of replies."""
