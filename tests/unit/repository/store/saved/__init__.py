"""Saved searches, search templates and stored results, as decisions."""
