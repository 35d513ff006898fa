"""Pages on webhooks, deliveries and alerts, and what mails link to."""
