"""The repository's addresses: one module for each surface, and one table of all routes."""
