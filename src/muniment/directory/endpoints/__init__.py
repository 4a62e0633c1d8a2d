"""The directory's addresses: one module a surface, one table of routes."""
