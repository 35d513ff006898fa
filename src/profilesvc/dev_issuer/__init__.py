"""The bundled development issuer: an OpenID provider where the demo users sign in without a password."""
