"""The directory's addresses."""
