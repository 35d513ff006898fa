"""Several processes of the service, and many sites that call it."""
