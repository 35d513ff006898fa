"""The provider's format, one to one."""
