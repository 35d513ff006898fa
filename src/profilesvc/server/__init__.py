"""Run an ASGI app: in this process until a signal, on a thread, or in several workers."""
