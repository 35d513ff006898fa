"""The delivery of events to the channels of their owners: webhooks, chats and mail."""
