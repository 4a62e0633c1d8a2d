"""The migrations of the repository's tables, one module for each."""
