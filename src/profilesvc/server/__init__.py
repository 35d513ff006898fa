"""Run an ASGI app: here until a signal, on a thread, as several workers."""
