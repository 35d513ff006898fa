"""Background work for owners: silent sites, alarms and webhooks."""
