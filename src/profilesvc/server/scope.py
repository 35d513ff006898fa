"""Names of the values that the server and the app pass to each other in an ASGI scope and in the lifespan state."""

BEFORE = "profilesvc.before"  # how many requests this process was running or had queued when this one arrived
ARRIVED = "profilesvc.arrived"  # a function: how many bytes of the body can be read now, and whether more will arrive
MALFORMED = "profilesvc.malformed"  # a function of the app, in the state, called for each malformed request
