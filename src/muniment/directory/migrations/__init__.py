"""The migrations of the directory's schema, from the first release to this one."""
