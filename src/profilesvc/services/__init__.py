"""One async function per API operation; nothing here knows HTTP."""
