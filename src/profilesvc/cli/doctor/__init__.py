"""`profilesvc doctor`: what an operator should repair, and how."""
