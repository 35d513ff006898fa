"""The views of notebooks: cards, charts, timelines, comparisons."""
