"""The repository's schema, step by step from the first release."""
