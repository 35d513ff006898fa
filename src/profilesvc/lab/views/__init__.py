"""What a notebook shows: cards, charts, timelines, comparisons."""
