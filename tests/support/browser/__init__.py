"""Browsers: of pages by HTTP, and Chromium."""
