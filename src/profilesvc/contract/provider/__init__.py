"""The provider's format, field by field."""
