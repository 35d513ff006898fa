"""The owner's account: export, deletion, files to download."""
