"""Texts of pages: values, events, problems and requests in the owner's words."""
