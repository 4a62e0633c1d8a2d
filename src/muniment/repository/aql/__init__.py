"""The structured query language: one query tree, and its spellings apart from it."""
