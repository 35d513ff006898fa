"""Webhooks and alerts: to whom an event is sent, and what was delivered."""
