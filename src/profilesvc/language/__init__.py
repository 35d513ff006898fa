"""The language of a reader: which one it is, its texts, and its dates and numbers."""
