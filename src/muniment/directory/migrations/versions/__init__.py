"""The steps of the directory's schema, one module each."""
