"""On the PYTHONPATH of a server that a test starts: a busy machine is no reason to reject a request."""

from profilesvc.database import postgres

postgres.BUSY_SECONDS = 60.0
