"""Searches: from a caller's question to a page of hits that the database confirms."""
