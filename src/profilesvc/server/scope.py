"""What server and app leave for each other in an ASGI scope and in its lifespan state."""

BEFORE = "profilesvc.before"  # how many requests this process was answering, or had waiting, when this one came
ARRIVED = "profilesvc.arrived"  # call it: how many bytes of the body are there to be read, and whether more will come
MALFORMED = "profilesvc.malformed"  # in the state, by the app: the server calls it for each request that is not HTTP
