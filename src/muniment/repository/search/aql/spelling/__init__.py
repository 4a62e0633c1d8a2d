"""Spellings: query documents in XML and JSON, and the words in them."""
