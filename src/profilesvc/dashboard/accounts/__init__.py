"""Pages on the owner's account: plan, audit trail, provider connections, deletion."""
