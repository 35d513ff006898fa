"""Small honest peers: the same five reads and writes as their frameworks' own documentation would have them written."""
