"""Queries on webhooks, deliveries, alerts and watched keys."""
