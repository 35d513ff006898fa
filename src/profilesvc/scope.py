"""What the server leaves for the app in an ASGI scope."""

BEFORE = "profilesvc.before"  # how many requests this process was answering, or had waiting, when this one came
