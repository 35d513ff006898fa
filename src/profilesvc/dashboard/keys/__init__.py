"""Pages on API keys: their list, form, requests and badges."""
