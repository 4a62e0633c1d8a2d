"""The directory's schema, step by step from the first release."""
