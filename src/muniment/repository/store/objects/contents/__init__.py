"""The contents of objects, as rows name them: which are stored, and how many rows name each."""
