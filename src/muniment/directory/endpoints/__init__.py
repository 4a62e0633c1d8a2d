"""The directory's addresses: ``routes`` lists them all, and the other modules read, answer and describe their
requests."""
