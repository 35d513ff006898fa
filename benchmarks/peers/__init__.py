"""Small peers that do the same work as the service, written as their frameworks' documentation recommends."""
